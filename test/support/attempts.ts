/**
 * Attempts for tests: a sender that reaches loopback and is closed by `await using`, and requests for it.
 */
import { expect, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import {
  type AttemptRequest,
  createSender,
  type Outcome,
  type Sender,
  type SenderOptions,
  type Withheld,
} from '../../src/delivery/attempt.ts';
import { createTargetPolicy, type TargetPolicy } from '../../src/delivery/target.ts';
import type { Body } from '../../src/store/store.ts';
import { ManualClock } from './clock.ts';
import type { Receiver } from './receivers.ts';

const SOON = { timeout: 10_000, interval: 5 };

export function policyAllowing(...allow: string[]): TargetPolicy {
  return createTargetPolicy({ allow, listeners: () => [], localAddresses: () => [] });
}

export interface TestSender extends Pick<Sender, 'close'>, AsyncDisposable {
  /** Fails where the attempt is withheld. */
  send(request: AttemptRequest): Promise<Outcome>;
  /** The sender's own answer. */
  attempt(request: AttemptRequest): Promise<Outcome | Withheld>;
}

export function openSender(options: Partial<SenderOptions> = {}): TestSender {
  const defaults = { timeout: 10_000, userAgent: 'Afterword/test', clock: systemClock };
  const sender = createSender({ policy: policyAllowing('127.0.0.0/8'), ...defaults, ...options });
  const send = async (request: AttemptRequest) => {
    const outcome = await sender.send(request);
    if ('withheld' in outcome) throw new Error(`withheld: ${outcome.withheld}`);
    return outcome;
  };
  const close = () => sender.close();
  return { send, attempt: request => sender.send(request), close, [Symbol.asyncDispose]: close };
}

export function attemptOn(target: string, more: Partial<AttemptRequest> = {}): AttemptRequest {
  const body = { bytes: Buffer.from('{"run_id":"run-1"}') };
  const request = { runId: 'run-1', target, confidential: {}, body, number: 1, standardWebhooks: false };
  return { ...request, permitted: () => true, ...more };
}

/** An attempt on a receiver that lives only for it. */
export async function attemptOnce(receiver: Receiver, more: Partial<AttemptRequest> = {}): Promise<Outcome> {
  await using sender = openSender();
  return await sender.send(attemptOn(receiver.url, more));
}

/** The same, with the deadline passing as soon as `condition` holds. */
export async function attemptToTheDeadline(
  receiver: Receiver,
  condition: () => boolean,
  body: Body,
): Promise<Outcome> {
  const clock = new ManualClock();
  await using sender = openSender({ clock, timeout: 1_000 });
  const sending = sender.send(attemptOn(receiver.url, { body }));
  await vi.waitFor(() => expect(condition()).toBe(true), SOON);
  clock.advance(1_000);
  return await sending;
}

/** A receiver that does not read sees the end of a connection only once it does. */
export async function expectAllClosed({ sockets }: Receiver): Promise<void> {
  for (const socket of sockets) socket.resume();
  await vi.waitFor(() => expect(sockets.size).toBe(0), SOON);
}
