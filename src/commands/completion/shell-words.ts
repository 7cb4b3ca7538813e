/**
 * Text as a word of a shell script, for bash and zsh alike.
 */

export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Of a `case`, any of these. */
export function patterns(texts: readonly string[]): string {
  return texts.map(quoted).join(' | ');
}
