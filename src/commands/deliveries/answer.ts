/**
 * One delivery as the service tells it, and what can be done to it. The body that is sent stands last in the
 * answer, as it is stored: it is cut out of it, never parsed and written again.
 */
import { buffer } from 'node:stream/consumers';
import type { z } from '@hono/zod-openapi';
import { InvalidArgumentError } from 'commander';
import type { Delivery, DeliveryDetail } from '../../api/delivery-contract.ts';
import { JsonScanner } from '../../delivery/json-scanner.ts';
import { ask, brokenOff, send, strange, successOf, type Told } from '../ask.ts';
import type { Answer, Client, Fault } from '../client.ts';

/** As lists and the live stream tell it. */
export type DeliveryFacts = z.output<typeof Delivery>;
/** As it is told on its own. */
export type DeliveryDetails = z.output<typeof DeliveryDetail>;

const WHAT = { key: 'run_id', what: 'a delivery' } as const;
const RUN_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function runIdArgument(text: string): string {
  const runId = text.toLowerCase();
  if (RUN_ID.test(runId)) return runId;
  throw new InvalidArgumentError('It must be the id of a run, as in X-Request-Id.');
}

export function runIdsArgument(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), runIdArgument(text)];
}

const withoutBody = (runId: string): string => `${pathOf(runId)}?exclude=body`;

export interface OpenOptions {
  /** With what is sent. */
  readonly body?: boolean;
  readonly signal?: AbortSignal;
}

/** To be passed on as it comes. */
export async function openDelivery(
  client: Client,
  runId: string,
  { body = false, signal }: OpenOptions = {},
): Promise<Answer | Fault> {
  const path = body ? pathOf(runId) : withoutBody(runId);
  return successOf(await send(client, { path, ...(signal !== undefined && { signal }) }), WHAT.what);
}

export function readDelivery(
  client: Client,
  runId: string,
  signal?: AbortSignal,
): Promise<Told<DeliveryDetails> | Fault> {
  const question = { path: withoutBody(runId), ...(signal !== undefined && { signal }) };
  return ask<DeliveryDetails>(client, question, WHAT);
}

export interface Redelivery {
  /** Another place for this round. */
  readonly target?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** The delivery as it is once it has a new round. */
export function redeliver(
  client: Client,
  runId: string,
  { target, idempotencyKey }: Redelivery,
): Promise<Told<DeliveryDetails> | Fault> {
  const question = {
    method: 'POST',
    path: `${pathOf(runId)}/redeliver`,
    headers: idempotencyKey === undefined ? [] : ['Idempotency-Key', idempotencyKey],
    ...(target !== undefined && { body: JSON.stringify({ target }) }),
  };
  return ask<DeliveryDetails>(client, question, WHAT);
}

/** The delivery as it is then. */
export function cancelDelivery(client: Client, runId: string): Promise<Told<DeliveryDetails> | Fault> {
  return ask<DeliveryDetails>(client, { method: 'POST', path: `${pathOf(runId)}/cancel` }, WHAT);
}

function pathOf(runId: string): string {
  return `/_deliveries/${runId}`;
}

export interface DeliveryWithBody {
  readonly kind: 'delivery';
  /** Its request without the body. */
  readonly details: DeliveryDetails;
  /** The bytes that are sent; undefined where they are gone. */
  readonly body: Buffer | undefined;
}

export async function readWithBody(
  client: Client,
  runId: string,
  signal?: AbortSignal,
): Promise<DeliveryWithBody | Fault> {
  const reply = await openDelivery(client, runId, { body: true, ...(signal !== undefined && { signal }) });
  if (reply.kind === 'fault') return reply;
  try {
    return partsOf(await buffer(reply.body)) ?? strange(reply, WHAT.what);
  } catch (error) {
    return brokenOff(error);
  }
}

// Within a string of JSON a quote has a backslash before it, so these can only be keys.
const REQUEST_KEY = ',"request":{';
const BODY_KEY = ',"body":';
const CLOSING = '}}';
const GONE = 'null';

/** Undefined where it is no such answer. */
export function partsOf(answer: Buffer): DeliveryWithBody | undefined {
  const request = answer.indexOf(REQUEST_KEY);
  const key = answer.indexOf(BODY_KEY, request);
  const [from, to] = [key + BODY_KEY.length, answer.length - CLOSING.length];
  if (request < 0 || key < 0 || from > to || answer.toString('latin1', to) !== CLOSING) return undefined;
  const body = answer.subarray(from, to);
  const scanner = new JsonScanner();
  scanner.push(body);
  if (!scanner.complete) return undefined;
  try {
    const details = JSON.parse(`${answer.toString('utf8', 0, from)}${GONE}${CLOSING}`) as DeliveryDetails;
    return { kind: 'delivery', details, body: body.equals(Buffer.from(GONE)) ? undefined : body };
  } catch {
    return undefined;
  }
}
