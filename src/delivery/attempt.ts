/**
 * One attempt: POSTs the body of a delivery to its target and tells what came of it. Whatever the receiver
 * does, or the network, is an Outcome and never an exception, and comes before the one deadline.
 */
import type { Clock } from '../clock.ts';
import { type Logger, silentLogger } from '../log.ts';
import type { AttemptTimings, Body, Confidential } from '../store/store.ts';
import { Answer } from './answer.ts';
import { type Clients, createClients } from './clients.ts';
import { type ConnectTimings, createDialer, type Lookup, systemLookup } from './connect.ts';
import { type AttemptErrorCode, AttemptFault, errorCode } from './outcome.ts';
import { openPayload, type Payload } from './payload.ts';
import { serviceSignature, standardSignature } from './signature.ts';
import type { TargetPolicy } from './target.ts';

export interface AttemptRequest {
  readonly runId: string;
  readonly target: string;
  readonly confidential: Confidential;
  readonly body: Body;
  /** Of the attempt within its round, from 1. */
  readonly number: number;
  /** Send the Standard Webhooks headers besides. */
  readonly standardWebhooks: boolean;
}

export interface Outcome {
  /** The receiver's status, where one arrived; then there is no error. */
  readonly status?: number;
  readonly error?: AttemptErrorCode;
  /** The beginning of the receiver's answer, as it came. */
  readonly excerpt?: Uint8Array;
  readonly startedAt: number;
  readonly timings: Omit<AttemptTimings, 'queueMs'>;
}

export interface Sender {
  /** Never rejects. */
  send(request: AttemptRequest): Promise<Outcome>;
  /** Ends idle connections and cuts off the attempts in flight: those end as `interrupted`. */
  close(): Promise<void>;
}

export interface SenderOptions {
  readonly policy: Pick<TargetPolicy, 'judge'>;
  /** Deadline of an attempt, in milliseconds. */
  readonly timeout: number;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly lookup?: Lookup;
  readonly log?: Logger;
}

export function createSender(options: SenderOptions): Sender {
  const { policy, timeout, userAgent, clock, lookup = systemLookup, log = silentLogger } = options;
  const clients = createClients({ dial: createDialer({ policy, lookup, clock, timeout }) });

  async function send(request: AttemptRequest): Promise<Outcome> {
    const startedAt = clock.now();
    const began = clock.elapsed();
    const answer = new Answer(clock);
    const cancelDeadline = clock.after(timeout, () => {
      answer.fail(new AttemptFault('timeout', `no answer within ${timeout} ms`));
    });
    const timestamp = Math.floor(startedAt / 1000);
    const connect = await exchange({ request, answer, clients, userAgent, timestamp });
    cancelDeadline();
    if (answer.error !== undefined) logFault(log, request, answer);
    const excerpt = withoutSecrets(answer.excerpt, request.confidential);
    return toOutcome({ answer, excerpt, connect, startedAt, totalMs: clock.elapsed() - began });
  }

  return { send, close: () => clients.close() };
}

interface Exchange {
  readonly request: AttemptRequest;
  readonly answer: Answer;
  readonly clients: Clients;
  readonly userAgent: string;
  readonly timestamp: number;
}

/** Settles the answer, one way or the other, and tells how the connection was opened, if it was. */
async function exchange({
  request,
  answer,
  clients,
  userAgent,
  timestamp,
}: Exchange): Promise<ConnectTimings> {
  let payload: Payload | undefined;
  try {
    payload = await openPayload(request.body);
    const headers = await attemptHeaders({ request, payload, userAgent, timestamp });
    return answer.isSettled ? {} : await post({ target: request.target, headers, payload, answer, clients });
  } catch (error) {
    answer.fail(error);
    return {};
  } finally {
    await payload?.close().catch(error => answer.fail(error));
  }
}

interface Post {
  readonly target: string;
  readonly headers: string[];
  readonly payload: Payload;
  readonly answer: Answer;
  readonly clients: Clients;
}

async function post({ target, headers, payload, answer, clients }: Post): Promise<ConnectTimings> {
  const url = new URL(target);
  const options = { method: 'POST', path: `${url.pathname}${url.search}`, headers, body: payload.content() };
  const connection = clients.take(url.origin);
  connection.client.dispatch(options, answer);
  await answer.settled;
  if (answer.complete) clients.giveBack(connection);
  else clients.discard(connection);
  return connection.timings ?? {};
}

interface HeaderInput {
  readonly request: AttemptRequest;
  readonly payload: Payload;
  readonly userAgent: string;
  readonly timestamp: number;
}

/** A flat list of names and values. There is no Accept-Encoding: the answer is kept as it comes. */
async function attemptHeaders({ request, payload, userAgent, timestamp }: HeaderInput): Promise<string[]> {
  const { runId, number, standardWebhooks, confidential } = request;
  const { secret, authorization } = confidential;
  const digest =
    secret === undefined ? undefined : await payload.sign({ secret, requestId: runId, timestamp });
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(payload.size)];
  headers.push('User-Agent', userAgent, 'X-Request-Id', runId);
  headers.push('X-Service-Webhook-Timestamp', String(timestamp), 'X-Service-Webhook-Attempt', String(number));
  if (digest !== undefined) headers.push('X-Service-Webhook-Signature', serviceSignature(digest));
  if (authorization !== undefined) headers.push('Authorization', authorization);
  if (!standardWebhooks) return headers;
  headers.push('webhook-id', runId, 'webhook-timestamp', String(timestamp));
  if (digest !== undefined) headers.push('webhook-signature', standardSignature(digest));
  return headers;
}

interface OutcomeInput {
  readonly answer: Answer;
  readonly excerpt: Uint8Array | undefined;
  readonly connect: ConnectTimings;
  readonly startedAt: number;
  readonly totalMs: number;
}

function toOutcome({ answer, excerpt, connect, startedAt, totalMs }: OutcomeInput): Outcome {
  const { status, error, firstByteMs } = answer;
  const timings = { ...connect, ...(firstByteMs === undefined ? {} : { firstByteMs }), totalMs };
  return {
    ...(status === undefined ? { error: errorCode(error) } : { status }),
    ...(excerpt === undefined ? {} : { excerpt }),
    startedAt,
    timings,
  };
}

/** Shorter ones stand in any text by chance. */
const TELLING_BYTES = 6;

/** What a receiver says is kept readable: not where it repeats what is sealed. */
function withoutSecrets(
  excerpt: Uint8Array | undefined,
  { secret, authorization }: Confidential,
): Uint8Array | undefined {
  if (excerpt === undefined) return undefined;
  const text = Buffer.from(excerpt.buffer, excerpt.byteOffset, excerpt.length);
  const basic = authorization?.slice('Basic '.length);
  const password =
    basic &&
    Buffer.from(basic, 'base64')
      .toString()
      .replace(/^[^:]*:/, '');
  const tells = [secret, basic, password].some(
    each => each !== undefined && each.length >= TELLING_BYTES && text.includes(each),
  );
  return tells ? undefined : excerpt;
}

/** The code in the outcome is for tables; what lies behind it is for the one who looks into a case. */
function logFault(log: Logger, { runId, number }: AttemptRequest, { error, status }: Answer): void {
  const message = error instanceof Error ? error.message : String(error);
  log.debug(
    { event: 'attempt_fault', run_id: runId, attempt: number, status, fault: message },
    'attempt fault',
  );
}
