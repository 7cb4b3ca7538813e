import { expect, it } from 'vitest';
import type { Clock } from '../src/clock.ts';
import { createReceiver, type ReceivedDelivery } from '../src/receiver.ts';

/** A receiver that waits an hour before it answers, by a clock that the test drives. */
function slowReceiver() {
  const waiting = Promise.withResolvers<{ ms: number; pass: () => void }>();
  const cancelled = Promise.withResolvers<void>();
  const received = Promise.withResolvers<ReceivedDelivery>();
  const clock: Clock = {
    now: () => 1_700_000_000_123,
    elapsed: () => 0,
    after(ms, task) {
      waiting.resolve({ ms, pass: task });
      return cancelled.resolve;
    },
  };
  const receiver = createReceiver({
    host: '127.0.0.1',
    port: 0,
    clock,
    secrets: [],
    status: 202,
    delayMs: 3_600_000,
    onDelivery: received.resolve,
  });
  return {
    receiver,
    waiting: waiting.promise,
    cancelled: cancelled.promise,
    received: received.promise,
    [Symbol.asyncDispose]: () => receiver.stop(),
  };
}

it('answers after the delay and not before', async () => {
  await using slow = slowReceiver();
  const address = await slow.receiver.start();
  let answered = false;
  const post = fetch(address, { method: 'POST', body: '{}', headers: { connection: 'close' } }).then(
    answer => {
      answered = true;
      return answer.status;
    },
  );
  const { ms, pass } = await slow.waiting;
  expect(ms).toBe(3_600_000);
  expect(answered).toBe(false);
  pass();
  expect(await post).toBe(202);
  expect(await slow.received).toMatchObject({
    receivedAt: 1_700_000_000_123,
    path: '/',
    signature: 'none',
    duplicate: false,
    answer: { status: 202 },
  });
});

it('tells that the sender did not wait', async () => {
  await using slow = slowReceiver();
  const address = await slow.receiver.start();
  const sender = new AbortController();
  const post = fetch(address, { method: 'POST', body: '{}', signal: sender.signal }).catch(() => 'gave up');
  await slow.waiting;
  sender.abort();
  expect(await post).toBe('gave up');
  await slow.cancelled;
  expect(await slow.received).toMatchObject({ answer: { error: 'the sender did not wait for the answer' } });
});

it('cuts off what waits for an answer when it stops', async () => {
  await using slow = slowReceiver();
  const address = await slow.receiver.start();
  const post = fetch(address, { method: 'POST', body: '{}' }).catch(() => 'cut off');
  await slow.waiting;
  await slow.receiver.stop();
  expect(await post).toBe('cut off');
  await slow.cancelled;
});

it('can be stopped before it has started, and twice', async () => {
  await using slow = slowReceiver();
  await slow.receiver.stop();
  await expect(slow.receiver.stop()).resolves.toBeUndefined();
});

it.each([
  ['127.0.0.1', /^http:\/\/127\.0\.0\.1:\d+\/$/],
  ['::1', /^http:\/\/\[::1\]:\d+\/$/],
])('tells its address on %s', async (host, expected) => {
  const clock: Clock = { now: () => 0, elapsed: () => 0, after: () => () => {} };
  const onDelivery = () => {};
  const receiver = createReceiver({ host, port: 0, clock, secrets: [], status: 200, delayMs: 0, onDelivery });
  expect((await receiver.start()).href).toMatch(expected);
  await receiver.stop();
});
