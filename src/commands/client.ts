/**
 * Speaks to a service for the commands. What comes of a request is a value: an answer, or a fault with its
 * line for the user. Answers stream, whatever their size.
 */
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { Agent } from 'undici';
import { Failed, printable } from './output.ts';
import type { ServiceAddress } from './service-options.ts';

const CONNECT_MS = 10_000;
/** Beyond any problem of the service. */
export const PEEK_BYTES = 64 * 1024;

export interface ClientRequest {
  readonly method: string;
  /** Behind `/v4/{project_id}`: begins with `/`, and has the query. */
  readonly path: string;
  /** Flat list of names and values, beside the token. */
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array | Readable;
  /** For the answer to begin, and then for each silence in it. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly kind: 'answer';
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Fault {
  readonly kind: 'fault';
  readonly message: string;
  /** It may be otherwise in a moment: the service cannot be reached, or cannot answer now. */
  readonly passing: boolean;
}

export function isFault(reply: { readonly kind: string }): reply is Fault {
  return reply.kind === 'fault';
}

export interface Client {
  send(request: ClientRequest): Promise<Answer | Fault>;
}

/** At the end of the work, what is still under way is cut. */
export async function withClient(
  address: ServiceAddress,
  work: (client: Client) => Promise<void>,
): Promise<void> {
  const agent = new Agent({ connect: { timeout: CONNECT_MS } });
  try {
    await work(createClient(agent, address));
  } finally {
    await agent.destroy();
  }
}

function createClient(agent: Agent, { url, projectId, token }: ServiceAddress): Client {
  const base = `${url.pathname.replace(/\/$/, '')}/v4/${encodeURIComponent(projectId)}`;

  function request({ method, path, headers = [], body, timeoutMs, signal }: ClientRequest) {
    return agent.request({
      origin: url.origin,
      path: base + path,
      method: method,
      headers: ['Authorization', `Bearer ${token}`, ...headers],
      ...(body !== undefined && { body }),
      ...(signal !== undefined && { signal }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  return {
    async send(wanted) {
      try {
        const { statusCode: status, headers, body } = await request(wanted);
        return await withoutProblem({ kind: 'answer', status, headers, body });
      } catch (error) {
        return { kind: 'fault', passing: true, message: lostMessage(error as NodeJS.ErrnoException, url) };
      }
    },
  };
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was closed',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name cannot be looked up',
  UND_ERR_CONNECT_TIMEOUT: 'connecting took too long',
  UND_ERR_SOCKET: 'the connection was closed',
};

function lostMessage({ code, message }: NodeJS.ErrnoException, { origin }: URL): string {
  if (code === 'UND_ERR_HEADERS_TIMEOUT') return `no answer from ${origin} in time`;
  return `no answer from ${origin} (${REASONS[code ?? ''] ?? message}): is the service running there?`;
}

/** An app may answer with a problem of its own, which passes; the service's has the id of this very call. */
async function withoutProblem(answer: Answer): Promise<Answer | Fault> {
  if (!answer.headers['content-type']?.startsWith('application/problem+json')) return answer;
  const { head, body } = await peek(answer.body, PEEK_BYTES);
  const { detail, code, run_id: runId } = objectIn(head.toString());
  const ours = typeof detail === 'string' && typeof code === 'string' && typeof runId === 'string';
  if (!ours || runId !== answer.headers['x-request-id']) return { ...answer, body };
  const message = `${printable(detail)} (${printable(code)}, run ${runId})`;
  return { kind: 'fault', message, passing: mayPass(answer.status) };
}

/** Of the service, or of a proxy before it. */
export function mayPass(status: number): boolean {
  return status >= 502 && status <= 504;
}

/** Empty where the text is anything else. */
export function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export interface Peeked {
  readonly head: Buffer;
  /** The head is all of it. */
  readonly whole: boolean;
  /** With the head. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Reads at least `bytes`, or all where there are fewer. */
export async function peek(body: AsyncIterable<Uint8Array>, bytes: number): Promise<Peeked> {
  const chunks = body[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let size = 0;
  let whole = false;
  while (size < bytes && !whole) {
    const { done, value } = await chunks.next();
    if (done === true) whole = true;
    else {
      read.push(value);
      size += value.length;
    }
  }
  const head = Buffer.concat(read);
  return { head, whole, body: joined(head, chunks) };
}

async function* joined(head: Buffer, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

export function answered(reply: Answer | Fault): Answer {
  if (reply.kind === 'answer') return reply;
  throw new Failed(reply.message);
}

/** Writes a body as it comes, as fast as it is taken; gives its last byte. */
export async function pour(
  body: AsyncIterable<Uint8Array>,
  stream: NodeJS.WritableStream,
): Promise<number | undefined> {
  let last: number | undefined;
  try {
    for await (const chunk of body) {
      last = chunk.at(-1) ?? last;
      if (!stream.write(chunk)) await once(stream, 'drain');
    }
  } catch (error) {
    throw new Failed(`the answer broke off: ${(error as Error).message}`);
  }
  return last;
}
