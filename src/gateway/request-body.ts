/**
 * The caller's body on its way to the app: handed over whole where it has arrived already (cheaper by
 * far), streamed otherwise. For cortex it is checked to be a JSON object while it passes.
 */
import { IncomingMessage } from 'node:http';
import { PassThrough, type Readable, Transform, type TransformCallback } from 'node:stream';
import { JsonScanner } from '../delivery/json-scanner.ts';
import { Problem } from '../errors.ts';

export type RequestBody = Buffer | IncomingMessage | null;
/** What is handed to the HTTP client. */
export type SentBody = Buffer | Readable | null;

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

/**
 * A body as it is. A request is piped and not handed over: the HTTP client destroys a body that it cannot
 * send to its end, and with a request would go the caller's connection.
 */
export function bodyAsIs(body: RequestBody): SentBody {
  return body instanceof IncomingMessage ? body.pipe(new PassThrough()) : body;
}

const NO_PARAMETERS = Buffer.from('{}');

/** The parameters of a function: a JSON object; no body at all stands for no parameters. */
export function parametersOf(body: RequestBody): SentBody {
  if (body === null) return NO_PARAMETERS;
  if (body instanceof IncomingMessage) return body.pipe(checked());
  const check = new ParametersCheck();
  check.push(body);
  check.end();
  return body;
}

/** Sees a body pass, and throws a Problem as soon as that cannot be a JSON object any more. */
export class ParametersCheck {
  readonly #scanner = new JsonScanner();
  #empty = true;

  /** Nothing has come yet. */
  get empty(): boolean {
    return this.#empty;
  }

  push(chunk: Uint8Array): void {
    this.#empty = false;
    this.#scanner.push(chunk);
    const { invalid, root } = this.#scanner;
    if (invalid || (root !== undefined && root !== 'object')) throw notAnObject();
  }

  end(): void {
    if (!this.#empty && !this.#scanner.complete) throw notAnObject();
  }
}

/** An error here keeps the app from ever seeing the end of the body. */
function checked(): Transform {
  const check = new ParametersCheck();
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      settle(done, () => {
        check.push(chunk);
        return chunk;
      });
    },
    flush(done) {
      settle(done, () => {
        check.end();
        return check.empty ? NO_PARAMETERS : undefined;
      });
    },
  });
}

/** A stream takes what goes wrong as a value. */
function settle(done: TransformCallback, make: () => Buffer | undefined): void {
  let made: Buffer | undefined;
  try {
    made = make();
  } catch (error) {
    done(error as Problem);
    return;
  }
  done(null, made);
}

function notAnObject(): Problem {
  return new Problem('invalid_parameters');
}
