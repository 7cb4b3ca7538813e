/**
 * What is kept of the headers of a receiver's answer, and how it is read again. They are kept as lines of text,
 * `Name: value`, in their order and case: stores have them in one column and never look inside.
 */

const MAX_BYTES = 2 * 1024;

/** They speak of the connection, or tell nothing that the attempt's time does not; cookies are a secret. */
const NOT_KEPT: ReadonlySet<string> = new Set([
  'connection',
  'date',
  'keep-alive',
  'set-cookie',
  'transfer-encoding',
]);

/** A value may be bytes of any kind. None of these may end a line, or steer the terminal of who reads it. */
const CONTROLS = /(?!\t)\p{Cc}/gu;

/**
 * `raw` is as undici has it: names and values in turn. One that does not fit into what may be kept is passed
 * over, whole. Undefined where none is kept.
 */
export function keepHeaders(raw: unknown): string | undefined {
  if (!Array.isArray(raw)) return undefined;
  const parts = raw as readonly Buffer[];
  let text = '';
  let room = MAX_BYTES;
  for (let i = 0; i + 1 < parts.length; i += 2) {
    const size = parts[i]!.length + parts[i + 1]!.length;
    if (size > room) continue;
    const name = parts[i]!.toString('latin1');
    if (NOT_KEPT.has(name.toLowerCase())) continue;
    room -= size;
    const line = `${name}: ${parts[i + 1]!.toString().trimEnd().replace(CONTROLS, '\ufffd')}`;
    text = text === '' ? line : `${text}\n${line}`;
  }
  return text === '' ? undefined : text;
}

export function headerPairs(kept: string): Array<[name: string, value: string]> {
  return kept.split('\n').map(line => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
}
