/**
 * A received delivery as `listen` and `dev` print it: a summary with the beginning of the body, or one line
 * of JSON.
 */
import type { ReceivedDelivery, SignatureVerdict } from '../receiver.ts';
import { type Colour, type Io, paint, printable } from './output.ts';

const PREVIEW_LINES = 16;
const PREVIEW_WIDTH = 100;
/** Enough for a preview, whatever the size of the body. */
const PREVIEW_BYTES = 16 * 1024;
/** Indented no further, so that brackets alone cannot fill the memory with spaces. */
const DEEPEST = 40;

const SIGNATURE_COLOURS: Record<SignatureVerdict, Colour> = {
  ok: 'green',
  bad: 'red',
  none: 'yellow',
  unchecked: 'dim',
};

export function printReceived(io: Io, delivery: ReceivedDelivery): void {
  const { receivedAt, requestId, attempt, signature, reason, duplicate, body, answer } = delivery;
  const accepted = 'status' in answer && answer.status >= 200 && answer.status < 300;
  const facts = [
    paint(io.stdout, 'dim', new Date(receivedAt).toISOString().slice(11, 23)),
    paint(io.stdout, 'bold', printable(requestId ?? 'no X-Request-Id')),
    attempt === undefined ? [] : `attempt ${attempt}`,
    paint(
      io.stdout,
      SIGNATURE_COLOURS[signature],
      `signature ${signature}${reason === undefined ? '' : ` (${reason})`}`,
    ),
    `${body.length} bytes`,
    paint(
      io.stdout,
      accepted ? 'green' : 'red',
      'status' in answer ? `answered ${answer.status}` : `not answered: ${printable(answer.error)}`,
    ),
    duplicate ? paint(io.stdout, 'yellow', 'duplicate') : [],
  ].flat();
  const preview = previewLines(body).map(line => `    ${line}\n`);
  io.stdout.write(`${facts.join('  ')}\n${preview.join('')}`);
}

/** The body is spliced in as it came where it is JSON, and is a string otherwise. */
export function printReceivedJson(io: Io, delivery: ReceivedDelivery): void {
  const { receivedAt, path, requestId, attempt, signature, reason, duplicate, body, answer } = delivery;
  const facts = JSON.stringify({
    received_at: new Date(receivedAt).toISOString(),
    path,
    run_id: requestId,
    attempt,
    signature,
    reason,
    duplicate,
    bytes: body.length,
    ...answer,
  });
  io.stdout.write(`${facts.slice(0, -1)},"body":${jsonOf(body)}}\n`);
}

function jsonOf(body: Uint8Array): string {
  const text = new TextDecoder().decode(body);
  try {
    JSON.parse(text);
  } catch {
    return JSON.stringify(text);
  }
  // In JSON a line break can only stand between tokens, where a space means the same.
  return text.replace(/[\r\n]+/g, ' ');
}

function previewLines(body: Uint8Array): string[] {
  const text = new TextDecoder().decode(body.subarray(0, PREVIEW_BYTES));
  const lines = (/^\s*[{[]/.test(text) ? indentJson(text) : text).split(/\r?\n/);
  const shown = lines
    .slice(0, PREVIEW_LINES)
    .map(printable)
    .map(line => (line.length > PREVIEW_WIDTH ? `${line.slice(0, PREVIEW_WIDTH)}…` : line));
  const more = lines.length > PREVIEW_LINES || body.length > PREVIEW_BYTES;
  return text === '' ? [] : [...shown, ...(more ? ['…'] : [])];
}

/** Strings, brackets, commas, colons, and what lies between them. A cut-off string is a token too. */
const TOKENS = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs;

/** Lays JSON out in lines without reading its values: numbers stay as they are, and cut-off text is fine. */
export function indentJson(text: string): string {
  let depth = 0;
  let laidOut = '';
  let previous = '';
  for (const [token] of text.matchAll(TOKENS)) {
    const closes = token === '}' || token === ']';
    const opened = previous === '{' || previous === '[';
    if (closes) depth = Math.max(0, depth - 1);
    if (closes ? !opened : opened || previous === ',')
      laidOut += `\n${'  '.repeat(Math.min(depth, DEEPEST))}`;
    laidOut += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
    previous = token;
  }
  return laidOut;
}
