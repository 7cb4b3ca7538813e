/**
 * One call: `POST /<function>` with a JSON object of parameters. What the function returns is the answer:
 * bytes as they are, an iterator as a stream of events, anything else as JSON. What it throws is answered
 * as an error and printed with its stack.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describeError, Refusal, report } from './error.ts';
import type { Callable } from './functions.ts';
import type { Output, RunLog } from './output.ts';
import { isBytes, toJson } from './serialize.ts';
import { answerStream, iteratorOf } from './stream.ts';

export interface CallDependencies {
  readonly functions: ReadonlyMap<string, Callable>;
  readonly output: Output;
}

/** What a function gets beside its parameters. */
export interface CallContext {
  readonly runId: string;
  /** Aborts when the caller hangs up. */
  readonly signal: AbortSignal;
  readonly log: RunLog;
}

export function createCallHandler({ functions, output }: CallDependencies) {
  return async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const hangUp = new AbortController();
    res.once('close', () => {
      if (!res.writableFinished) hangUp.abort(new Error('the caller hung up'));
    });
    const body = await readBody(req);
    if (body === undefined) return;
    const { signal } = hangUp;
    const runId = String(req.headers['x-request-id'] ?? '-');
    await output.within(runId, async log => {
      try {
        const call = functionOf(functions, req);
        await answer(
          await call(parametersOf(body), { runId, signal, log } satisfies CallContext),
          res,
          signal,
        );
      } catch (error) {
        answerError(error, res);
      }
    });
  };
}

/** Undefined where the caller hung up in the midst of it. */
async function readBody(req: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}

function functionOf(functions: ReadonlyMap<string, Callable>, { method, url }: IncomingMessage): Callable {
  if (method !== 'POST') throw new Refusal(405, 'MethodNotAllowed', 'functions are called by POST');
  const name = url!.slice(1).split('?', 1)[0]!;
  const found = functions.get(name);
  if (found !== undefined) return found;
  const known = [...functions.keys()].join(', ');
  throw new Refusal(404, 'FunctionNotFound', `there is no function '${name}', there are: ${known}`);
}

function parametersOf(body: Buffer): object {
  const parameters = body.length === 0 ? {} : parse(body);
  if (typeof parameters === 'object' && parameters !== null && !Array.isArray(parameters)) return parameters;
  throw new Refusal(400, 'InvalidParameters', 'the parameters are not a JSON object');
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch (error) {
    throw new Refusal(400, 'InvalidParameters', `the parameters are not JSON: ${(error as Error).message}`);
  }
}

async function answer(result: unknown, res: ServerResponse, signal: AbortSignal): Promise<void> {
  const iterator = iteratorOf(result);
  if (iterator !== undefined) await answerStream(iterator, { res, signal });
  else if (isBytes(result)) send(res, 200, 'application/octet-stream', viewOf(result));
  else send(res, 200, 'application/json', Buffer.from(toJson(result)));
}

function viewOf(bytes: Uint8Array | ArrayBuffer): Uint8Array {
  return bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
}

function answerError(error: unknown, res: ServerResponse): void {
  if (!(error instanceof Refusal)) report(error);
  const status = error instanceof Refusal ? error.status : 500;
  send(res, status, 'application/json', Buffer.from(JSON.stringify({ error: describeError(error) })));
}

function send(res: ServerResponse, status: number, type: string, bytes: Uint8Array): void {
  res.writeHead(status, { 'Content-Type': type, 'Content-Length': bytes.length }).end(bytes);
}
