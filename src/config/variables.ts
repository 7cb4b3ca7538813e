/**
 * `${NAME}` in the text of a configuration file. References are marked before the text is parsed, since YAML
 * would read the braces in `{ secret: ${NAME} }` as a map, and replaced in the parsed strings afterwards, so
 * that what a variable holds is never read as YAML. `$${` stands for a literal `${`.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

export type Expansion = { readonly text: string } | { readonly fault: string };

export interface Template {
  /** The text with its references marked; every character keeps its place. */
  readonly marked: string;
  /** The variables that the text refers to, comments included. */
  readonly names: ReadonlySet<string>;
  /** A parsed string with its references replaced. */
  readonly expand: (parsed: string) => Expansion;
  /** A parsed string as it was written. */
  readonly restore: (parsed: string) => string;
}

const NAME = '[A-Za-z_][A-Za-z0-9_]*';
const REFERENCE = new RegExp(`(?<!\\$)\\$\\{(${NAME})\\}`, 'g');

export function createTemplate(text: string, env: Environment): Template {
  const mark = unusedCharacter(text);
  const names = new Set<string>();
  const marked = text.replace(REFERENCE, (_, name: string) => {
    names.add(name);
    return `${mark}${mark}${name}${mark}`;
  });
  const pieces = new RegExp(`${mark}{2}(${NAME})${mark}|\\$\\$\\{|\\$\\{`, 'g');
  return {
    marked,
    names,
    restore: parsed => parsed.replace(pieces, (piece, name?: string) => (name ? `\${${name}}` : piece)),
    expand(parsed) {
      const faults = new Set<string>();
      const expanded = parsed.replace(pieces, (piece, name?: string) => {
        if (name === undefined) {
          if (piece === '${') faults.add('expected ${NAME} after a dollar sign, or $${ for a literal ${');
          return '${';
        }
        if (env[name] === undefined) faults.add(`the variable ${name} is not set`);
        return env[name] ?? '';
      });
      return faults.size === 0 ? { text: expanded } : { fault: [...faults].join('; ') };
    },
  };
}

/** A string as it has to be written for `expand` to give it back. */
export function escapeReferences(text: string): string {
  // A function, since `$$` in a replacement text would mean a single `$`.
  return text.replaceAll('${', () => '$${');
}

// Private-use characters are allowed anywhere in YAML and mean nothing to it.
function unusedCharacter(text: string): string {
  let code = 0xe000;
  while (text.includes(String.fromCharCode(code))) code += 1;
  return String.fromCharCode(code);
}
