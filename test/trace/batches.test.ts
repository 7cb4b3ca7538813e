/** How spans are gathered and sent, and what is said where they are lost. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createLogger } from '../../src/log.ts';
import { createBatches } from '../../src/trace/batches.ts';
import { createSpanRequest, type EndedSpan } from '../../src/trace/otlp.ts';
import { fieldsOf } from '../support/collector.ts';
import { until } from '../support/waiting.ts';

const SPAN: EndedSpan = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parent: undefined,
  linked: false,
  tracestate: undefined,
  startedAt: 1,
  endedAt: 2,
  beginning: new Uint8Array(),
  ending: new Uint8Array(),
  app: new Uint8Array(),
  attributes: [],
};

function spansIn(request: Buffer): number {
  const [ofResource] = fieldsOf(request).all(1);
  const [inScope] = fieldsOf(ofResource!).all(2);
  return fieldsOf(inScope!).all(2).length;
}

function open(limits: { maxQueueSize: number; maxExportBatchSize: number }) {
  const sent: { spans: number; memory: ArrayBufferLike; done: PromiseWithResolvers<void> }[] = [];
  const logged: string[] = [];
  const log = createLogger({
    level: 'info',
    destination: { write: line => void logged.push((JSON.parse(line) as { msg: string }).msg) },
  });
  const batches = createBatches({
    limits: { scheduledDelayMillis: 60_000, ...limits },
    newRequest: () => createSpanRequest({ name: 'test', version: '0', resource: [] }),
    send(request) {
      const done = Promise.withResolvers<void>();
      sent.push({ spans: spansIn(request), memory: request.buffer, done });
      return done.promise;
    },
    clock: systemClock,
    log,
  });
  const add = (count: number): void => {
    for (let i = 0; i < count; i++) batches.add(SPAN);
  };
  return { batches, add, sent, logged };
}

it('sends a batch when it is full, one at a time, and the rest at the end', async () => {
  const { batches, add, sent, logged } = open({ maxQueueSize: 10, maxExportBatchSize: 2 });
  add(5);
  expect(sent).toHaveLength(1);
  const flushed = batches.flush();
  for (const at of [0, 1, 2]) {
    await until(() => sent.length === at + 1);
    sent[at]!.done.resolve();
  }
  await flushed;
  expect(sent.map(({ spans }) => spans)).toEqual([2, 2, 1]);
  expect(logged).toEqual([]);
});

it('loses what does not fit, and tells it once', async () => {
  const { batches, add, sent, logged } = open({ maxQueueSize: 4, maxExportBatchSize: 2 });
  add(10); // two on their way, four that wait
  const flushed = batches.flush();
  for (const at of [0, 1, 2]) {
    await until(() => sent.length === at + 1);
    sent[at]!.done.resolve();
  }
  await flushed;
  expect(sent).toHaveLength(3);
  expect(logged).toEqual(['spans are lost', 'spans are sent again']);
});

it('fills anew what was taken, and not what may still be on its way', async () => {
  const { batches, add, sent } = open({ maxQueueSize: 10, maxExportBatchSize: 1 });
  for (const [at, taken] of [true, false, true, true].entries()) {
    add(1);
    const { done } = sent[at]!;
    if (taken) done.resolve();
    else done.reject(new Error('refused'));
    await batches.flush();
  }
  const [first, second, third, fourth] = sent.map(({ memory }) => memory);
  expect(third).toBe(first);
  expect([first, second]).not.toContain(fourth);
  expect(sent.map(({ spans }) => spans)).toEqual([1, 1, 1, 1]);
});

it('goes on after there was nothing to send', async () => {
  const { batches, add, sent } = open({ maxQueueSize: 10, maxExportBatchSize: 2 });
  await batches.flush();
  add(2);
  expect(sent).toHaveLength(1);
});

it('tells of a collector that refuses once, and when it does no longer', async () => {
  const { batches, add, sent, logged } = open({ maxQueueSize: 10, maxExportBatchSize: 1 });
  for (const [at, taken] of [false, false, true, true].entries()) {
    add(1);
    const { done } = sent[at]!;
    if (taken) done.resolve();
    else done.reject(new Error('refused'));
    await batches.flush();
  }
  expect(logged).toEqual(['spans are lost', 'spans are sent again']);
});
