/**
 * Asks the service for one JSON object that fits into memory, and gives it as a value, or as a fault.
 */
import { text as readText } from 'node:stream/consumers';
import { type Answer, type Client, type ClientRequest, type Fault, mayPass, objectIn } from './client.ts';
import { Failed } from './output.ts';

const TIMEOUT_MS = 60_000;

export type Question = Pick<ClientRequest, 'path'> & Partial<ClientRequest>;

export interface Told<T> {
  readonly kind: 'told';
  readonly value: T;
}

/** `key`: one that the object has, whatever it tells; `what`: what it tells of, for people. */
export async function ask<T extends object>(
  client: Client,
  question: Question,
  { key, what }: { readonly key: keyof T & string; readonly what: string },
): Promise<Told<T> | Fault> {
  const reply = successOf(await send(client, question), what);
  if (reply.kind === 'fault') return reply;
  try {
    const value = objectIn(await readText(reply.body));
    return key in value ? { kind: 'told', value: value as unknown as T } : strange(reply, what);
  } catch (error) {
    return brokenOff(error);
  }
}

/** For whom a fault is the end. */
export function told<T>(reply: Told<T> | Fault): T {
  if (reply.kind === 'told') return reply.value;
  throw new Failed(reply.message);
}

export function send(client: Client, question: Question): Promise<Answer | Fault> {
  return client.send({ method: 'GET', timeoutMs: TIMEOUT_MS, ...question });
}

/** A fault where the status is none that the service tells something with. */
export function successOf(reply: Answer | Fault, what: string): Answer | Fault {
  return reply.kind === 'fault' || (reply.status >= 200 && reply.status < 300) ? reply : strange(reply, what);
}

export function strange({ status }: Answer, what: string): Fault {
  const message = `status ${status}, which tells nothing of ${what}: is this the service?`;
  return { kind: 'fault', message, passing: mayPass(status) };
}

export function brokenOff(error: unknown): Fault {
  return { kind: 'fault', message: `the answer broke off: ${(error as Error).message}`, passing: true };
}
