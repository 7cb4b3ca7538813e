/**
 * A receiver for trying things out: takes deliveries, checks their signatures, and answers as it was told
 * to, or as the server does that it forwards them to. It reports every delivery and refuses none.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request as send } from 'undici';
import type { Clock } from './clock.ts';
import { listenError } from './errors.ts';
import { VerificationError, type VerificationFailure, verifyDelivery } from './verify.ts';

/** `none`: the delivery is not signed. `unchecked`: it is, but no secret is known here. */
export type SignatureVerdict = 'ok' | 'bad' | 'none' | 'unchecked';

export interface ReceivedDelivery {
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  /** Path and query. */
  readonly path: string;
  readonly requestId?: string;
  readonly attempt?: number;
  readonly signature: SignatureVerdict;
  /** Why the signature is bad. */
  readonly reason?: VerificationFailure;
  /** A delivery with this request id has been answered with a 2xx before. */
  readonly duplicate: boolean;
  readonly body: Uint8Array;
  /** The status of the answer, or why none was given. */
  readonly answer: Answer;
}

export type Answer = { readonly status: number } | { readonly error: string };

export interface ReceiverOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly clock: Clock;
  /** Signatures are checked where there is at least one. */
  readonly secrets: readonly string[];
  readonly status: number;
  readonly delayMs: number;
  /** Deliveries go on to this server, and its status is the answer. */
  readonly forwardTo?: URL;
  onDelivery(delivery: ReceivedDelivery): void;
}

export interface Receiver {
  /** Resolves with the address it listens on; rejects with a StartError where the port cannot be had. */
  start(): Promise<URL>;
  /** Cuts off what has not been answered. */
  stop(): Promise<void>;
}

const BODY_LIMIT = 64 * 1024 * 1024;
/** Request ids remembered in order to notice duplicates. */
const MEMORY = 10_000;
/** Belong to one connection or are set anew for the next (RFC 9110, section 7.6.1). */
const NOT_FORWARDED = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export function createReceiver(options: ReceiverOptions): Receiver {
  const accepted = new Set<string>();
  const stopping = new AbortController();
  let server: Server | undefined;

  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const receivedAt = options.clock.now();
    const body = await readBody(request);
    const gone = goneSignal(response, stopping.signal);
    const verdict = await checkSignature(request, body ?? new Uint8Array(), options.secrets);
    const answer = body === undefined ? { status: 413 } : await decide(request, body, options, gone);
    give(response, answer);
    const requestId = request.headers['x-request-id'] as string | undefined;
    options.onDelivery({
      receivedAt,
      path: request.url ?? '/',
      ...(requestId !== undefined && { requestId }),
      ...attemptOf(request),
      ...verdict,
      duplicate: requestId !== undefined && accepted.has(requestId),
      body: body ?? new Uint8Array(),
      answer,
    });
    if (requestId !== undefined && 'status' in answer && isSuccess(answer.status)) {
      remember(accepted, requestId);
    }
  };

  return {
    async start() {
      server = createServer((request, response) => {
        if (request.method !== 'POST') {
          response.writeHead(405, { allow: 'POST' }).end('Deliveries are sent by POST.\n');
          return;
        }
        // What fails in here is the connection: the sender knows.
        receive(request, response).catch(() => response.destroy());
      });
      return listen(server, options);
    },
    async stop() {
      stopping.abort();
      if (server === undefined) return;
      const closed = new Promise(resolve => server?.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listen(server: Server, { host, port }: ReceiverOptions): Promise<URL> {
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve);
    server.once('error', error => reject(listenError(error, { host, port })));
    server.listen(port, host);
  });
  const bound = server.address() as AddressInfo;
  return new URL(`http://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}/`);
}

/** Undefined: too large. What else comes of it is read and thrown away. */
async function readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= BODY_LIMIT) chunks.push(chunk);
    else chunks.length = 0;
  }
  return size <= BODY_LIMIT ? Buffer.concat(chunks) : undefined;
}

async function checkSignature(
  { headers }: IncomingMessage,
  body: Uint8Array,
  secrets: readonly string[],
): Promise<{ signature: SignatureVerdict; reason?: VerificationFailure }> {
  if (headers['x-service-webhook-signature'] === undefined) return { signature: 'none' };
  if (secrets.length === 0) return { signature: 'unchecked' };
  try {
    await verifyDelivery({ headers, body, secret: secrets });
    return { signature: 'ok' };
  } catch (error) {
    if (!(error instanceof VerificationError)) throw error;
    return { signature: 'bad', reason: error.reason };
  }
}

/** Aborts once nobody waits for the answer any more. */
function goneSignal(response: ServerResponse, stopping: AbortSignal): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return AbortSignal.any([gone.signal, stopping]);
}

async function decide(
  request: IncomingMessage,
  body: Uint8Array,
  { clock, delayMs, status, forwardTo }: ReceiverOptions,
  gone: AbortSignal,
): Promise<Answer> {
  try {
    if (delayMs > 0) await wait(clock, delayMs, gone);
    return { status: forwardTo === undefined ? status : await forward(request, body, forwardTo, gone) };
  } catch (error) {
    if (gone.aborted) return { error: 'the sender did not wait for the answer' };
    return { error: `${forwardTo?.origin} cannot be reached: ${reasonOf(error)}` };
  }
}

function wait(clock: Clock, ms: number, gone: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, resolve);
    gone.addEventListener('abort', () => {
      cancel();
      reject(gone.reason);
    });
  });
}

async function forward(
  request: IncomingMessage,
  body: Uint8Array,
  target: URL,
  gone: AbortSignal,
): Promise<number> {
  const headers: string[] = [];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index]!;
    if (!NOT_FORWARDED.has(name.toLowerCase())) headers.push(name, request.rawHeaders[index + 1]!);
  }
  const answer = await send(target, { method: 'POST', headers, body, signal: gone });
  await answer.body.dump();
  return answer.statusCode;
}

/**
 * Where there is nothing to answer the connection is cut, so that the sender sees the network error which
 * the server behind would have caused, and tries again.
 */
function give(response: ServerResponse, answer: Answer): void {
  if ('status' in answer) response.writeHead(answer.status).end();
  else response.destroy();
}

function remember(accepted: Set<string>, requestId: string): void {
  accepted.add(requestId);
  if (accepted.size > MEMORY) accepted.delete(accepted.values().next().value!);
}

function attemptOf({ headers }: IncomingMessage): { attempt?: number } {
  const attempt = Number(headers['x-service-webhook-attempt']);
  return Number.isInteger(attempt) ? { attempt } : {};
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return reasonOf(error.errors[0]);
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error);
}
