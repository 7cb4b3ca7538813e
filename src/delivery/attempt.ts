/**
 * One attempt: POSTs the body of a delivery to its target and tells what came of it. Whatever the receiver
 * does, or the network, is an Outcome and never an exception, and comes before the one deadline. An attempt
 * that we did not send ourselves is withheld, which is no outcome.
 */
import type { Clock } from '../clock.ts';
import { type Logger, silentLogger } from '../log.ts';
import type { AttemptTimings, Body, Confidential } from '../store/store.ts';
import type { TraceContext } from '../trace.ts';
import { Answer } from './answer.ts';
import { type Clients, createClients } from './clients.ts';
import { type ConnectTimings, createDialer, type Lookup, systemLookup } from './connect.ts';
import { type Kept, keptOf } from './kept-answer.ts';
import { type AttemptErrorCode, AttemptFault, errorCode } from './outcome.ts';
import { type Content, createPayload, type Payload } from './payload.ts';
import { serviceSignature, standardSignature } from './signature.ts';
import type { TargetPolicy } from './target.ts';
import { WithheldError, type WithheldReason } from './withheld.ts';

export interface AttemptRequest {
  readonly runId: string;
  readonly target: string;
  readonly confidential: Confidential;
  readonly body: Body;
  /** Of the attempt within its round, from 1. */
  readonly number: number;
  /** Send the Standard Webhooks headers besides. */
  readonly standardWebhooks: boolean;
  /** Where the attempt is traced. */
  readonly trace?: TraceContext | undefined;
  /** Asked right before the request is written, and before each piece of a body that comes in pieces. */
  readonly permitted: () => boolean;
}

export interface Outcome extends Kept {
  /** The receiver's status, where one arrived; then there is no error. */
  readonly status?: number;
  readonly error?: AttemptErrorCode;
  readonly startedAt: number;
  readonly timings: Omit<AttemptTimings, 'queueMs'>;
}

export interface Withheld {
  readonly withheld: WithheldReason;
}

export interface Sender {
  /** Never rejects. */
  send(request: AttemptRequest): Promise<Outcome | Withheld>;
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

  async function send(request: AttemptRequest): Promise<Outcome | Withheld> {
    const startedAt = clock.now();
    const began = clock.elapsed();
    const answer = new Answer({ clock, permitted: request.permitted });
    const payload = createPayload(request.body);
    const cancelDeadline = clock.after(timeout, () => answer.fail(lateness(payload, timeout)));
    const timestamp = Math.floor(startedAt / 1000);
    const connect = await exchange({ request, answer, payload, clients, userAgent, timestamp });
    cancelDeadline();
    const { error, status } = answer;
    if (error !== undefined) logFault(log, request, answer);
    if (error instanceof WithheldError && status === undefined) return { withheld: error.reason };
    const kept = keptOf(answer, request.confidential);
    return toOutcome({ answer, kept, connect, startedAt, totalMs: clock.elapsed() - began });
  }

  return { send, close: () => clients.close() };
}

function lateness({ reading }: Payload, timeout: number): Error {
  return reading
    ? new WithheldError('body_unreadable', `the body could not be read within ${timeout} ms`)
    : new AttemptFault('timeout', `no answer within ${timeout} ms`);
}

interface Exchange {
  readonly request: AttemptRequest;
  readonly answer: Answer;
  readonly payload: Payload;
  readonly clients: Clients;
  readonly userAgent: string;
  readonly timestamp: number;
}

/** Settles the answer, one way or the other, and tells how the connection was opened, if it was. */
async function exchange(input: Exchange): Promise<ConnectTimings> {
  const { request, answer, payload, clients } = input;
  try {
    // The deadline holds here as well: a store that is away lets a body wait for as long as it is.
    const message = await Promise.race([compose(input), answer.settled]);
    if (message === undefined || answer.isSettled) return {};
    return await post({ target: request.target, message, answer, clients });
  } catch (error) {
    answer.fail(error);
    return {};
  } finally {
    payload.close();
  }
}

interface Message {
  readonly headers: string[];
  readonly content: Content;
}

async function compose(input: Exchange): Promise<Message> {
  const headers = await attemptHeaders(input);
  return { headers, content: await input.payload.content(input.request.permitted) };
}

interface Post {
  readonly target: string;
  readonly message: Message;
  readonly answer: Answer;
  readonly clients: Clients;
}

async function post({ target, message, answer, clients }: Post): Promise<ConnectTimings> {
  const url = new URL(target);
  const { headers, content } = message;
  // undici takes an async iterable as well, and writes each piece as soon as it has it; its types do not say so.
  const body = content as Uint8Array;
  const options = { method: 'POST', path: `${url.pathname}${url.search}`, headers, body };
  const connection = clients.take(url.origin);
  connection.client.dispatch(options, answer);
  await answer.settled;
  if (answer.complete) clients.giveBack(connection);
  else clients.discard(connection);
  return connection.timings ?? {};
}

/** A flat list of names and values. There is no Accept-Encoding: the answer is kept as it comes. */
async function attemptHeaders({ request, payload, userAgent, timestamp }: Exchange): Promise<string[]> {
  const { runId, number, standardWebhooks, confidential, trace } = request;
  const { secret, authorization } = confidential;
  const digest =
    secret === undefined ? undefined : await payload.sign({ secret, requestId: runId, timestamp });
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(payload.size)];
  headers.push('User-Agent', userAgent, 'X-Request-Id', runId);
  headers.push('X-Service-Webhook-Timestamp', String(timestamp), 'X-Service-Webhook-Attempt', String(number));
  if (digest !== undefined) headers.push('X-Service-Webhook-Signature', serviceSignature(digest));
  if (authorization !== undefined) headers.push('Authorization', authorization);
  if (trace !== undefined) headers.push('traceparent', trace.traceparent);
  if (!standardWebhooks) return headers;
  headers.push('webhook-id', runId, 'webhook-timestamp', String(timestamp));
  if (digest !== undefined) headers.push('webhook-signature', standardSignature(digest));
  return headers;
}

interface OutcomeInput {
  readonly answer: Answer;
  readonly kept: Kept;
  readonly connect: ConnectTimings;
  readonly startedAt: number;
  readonly totalMs: number;
}

function toOutcome({ answer, kept, connect, startedAt, totalMs }: OutcomeInput): Outcome {
  const { status, error, firstByteMs } = answer;
  const timings = { ...connect, ...(firstByteMs === undefined ? {} : { firstByteMs }), totalMs };
  return {
    ...(status === undefined ? { error: errorCode(error) } : { status }),
    ...kept,
    startedAt,
    timings,
  };
}

/** The code in the outcome is for tables; what lies behind it is for the one who looks into a case. */
function logFault(log: Logger, { runId, number }: AttemptRequest, { error, status }: Answer): void {
  const fault = error instanceof Error ? error.message : String(error);
  const entry = { event: 'attempt_fault', run_id: runId, attempt: number, status, fault };
  // Of our own making, and nobody else tells of it.
  if (error instanceof WithheldError && error.reason === 'body_unreadable')
    log.warn(entry, 'attempt withheld');
  else log.debug(entry, 'attempt fault');
}
