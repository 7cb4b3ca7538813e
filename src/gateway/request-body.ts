/**
 * The caller's body on its way to the app: handed over whole where it has arrived already (cheaper by
 * far), streamed otherwise. For cortex it is checked to be a JSON object while it passes.
 */
import type { IncomingMessage } from 'node:http';
import { JsonScanner } from '../delivery/json-scanner.ts';
import { Problem } from '../errors.ts';

export type RequestBody = Buffer | IncomingMessage | AsyncIterable<Uint8Array> | null;

/** Declared lengths up to which a body is worth waiting for within its tick. */
const GATHER_LIMIT = 64 * 1024;

/**
 * Calls `ready` once with the body: whole when it arrives along with the head, else as the request itself,
 * to be read as a stream. A caller who hangs up meanwhile makes no call.
 */
export function takeBody(
  req: IncomingMessage,
  length: number | undefined,
  ready: (body: RequestBody) => void,
): void {
  if (length === 0) {
    ready(null);
    return;
  }
  if (length === undefined || length > GATHER_LIMIT) {
    ready(req);
    return;
  }
  const chunks: Buffer[] = [];
  const gather = (chunk: Buffer): void => {
    chunks.push(chunk);
  };
  const whole = (): void => {
    clearImmediate(notYet);
    ready(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
  };
  const notYet = setImmediate(() => {
    req.off('data', gather).off('end', whole).pause();
    if (req.destroyed) return;
    if (chunks.length > 0) req.unshift(Buffer.concat(chunks));
    ready(req);
  });
  req.on('data', gather).on('end', whole);
}

const NO_PARAMETERS = Buffer.from('{}');

/** The parameters of a function: a JSON object; no body at all stands for no parameters. */
export function parametersOf(body: RequestBody): RequestBody {
  if (body === null) return NO_PARAMETERS;
  const scanner = new JsonScanner();
  if (body instanceof Buffer) {
    check(scanner, body);
    if (!scanner.complete) throw notAnObject();
    return body;
  }
  return checked(body as AsyncIterable<Uint8Array>, scanner);
}

/** An error here keeps the app from ever seeing the end of the body. */
async function* checked(body: AsyncIterable<Uint8Array>, scanner: JsonScanner): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    check(scanner, chunk);
    yield chunk;
  }
  if (!scanner.complete) throw notAnObject();
}

function check(scanner: JsonScanner, chunk: Uint8Array): void {
  scanner.push(chunk);
  if (scanner.invalid || (scanner.root !== undefined && scanner.root !== 'object')) throw notAnObject();
}

function notAnObject(): Problem {
  return new Problem('invalid_parameters');
}
