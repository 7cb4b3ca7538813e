/**
 * Where a page of a list ends, as text that means nothing to whoever carries it to the next page. It is the
 * run itself, not a count: runs that arrive meanwhile shift nothing.
 */

const UUID = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/;

export function cursorAt(runId: string): string {
  return Buffer.from(runId.replaceAll('-', ''), 'hex').toString('base64url');
}

/** The run id that a cursor holds; something else than a run id where nobody gave it out. */
export function runIdAt(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString('hex').replace(UUID, '$1-$2-$3-$4-$5');
}
