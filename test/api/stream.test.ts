/**
 * Deliveries live: changes arrive as events, to each what it asked for; nobody is kept who does not read.
 */
import { request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Delivery } from '../../src/api/delivery-contract.ts';
import { createLive } from '../../src/api/live.ts';
import { silentLogger } from '../../src/log.ts';
import type { DeliverySummary, Ledger } from '../../src/store/ledger.ts';
import type { Store } from '../../src/store/store.ts';
import { ManualClock } from '../support/clock.ts';
import { until } from '../support/waiting.ts';
import { openRig, PROJECT, type Rig, serveApi } from './rig.ts';

const STREAM = `/v4/${PROJECT}/_deliveries/stream`;

/** Whoever looks on, and what it has read. */
async function lookOn(rig: { readonly port: number }, path = STREAM, headers: Record<string, string> = {}) {
  let text = '';
  let ended = false;
  const req = request({ port: rig.port, host: '127.0.0.1', path, headers });
  const answered = Promise.withResolvers<number>();
  req.on('response', res => {
    answered.resolve(res.statusCode!);
    res.setEncoding('utf8').on('data', (piece: string) => void (text += piece));
    res.on('end', () => void (ended = true)).on('error', () => {});
  });
  req.on('error', () => {});
  req.end();
  onTestFinished(() => void req.destroy());
  expect(await answered.promise).toBe(200);
  await until(() => text.includes('\n\n'));
  return {
    text: () => text,
    ended: () => ended,
    leave: () => void req.destroy(),
    events: () =>
      [...text.matchAll(/^event: delivery\nid: (.*)\ndata: (.*)\n$/gm)].map(([, id, data]) => ({
        id,
        delivery: Delivery.strict().parse(JSON.parse(data!)),
      })),
  };
}

describe('the live stream', () => {
  it('tells of each change, with the delivery as it then is', async () => {
    const rig = await openRig();
    const onlooker = await lookOn(rig);
    const { runId } = await rig.deliver();
    await until(() => onlooker.events().length === 1);
    expect(onlooker.events()).toMatchObject([{ id: runId, delivery: { run_id: runId, state: 'pending' } }]);
    await rig.store.ledger.cancel(runId, Date.now());
    await until(() => onlooker.events().length === 2);
    expect(onlooker.events()[1]).toMatchObject({ id: runId, delivery: { state: 'cancelled' } });
  });

  it('tells each what it asked for, of its own project alone', async () => {
    const rig = await openRig();
    const failed = await lookOn(rig, `${STREAM}?state=failed&status=5xx`);
    const own = await lookOn(rig);
    const all = await lookOn(rig, '/api/v1/deliveries/stream');
    const bad = await rig.attempted({ state: 'failed', reason: 'rejected' }, { status: 500 });
    const good = await rig.attempted({ state: 'delivered' });
    const foreign = await rig.deliver({ projectId: 'p-else' });
    const ids = (onlooker: typeof all) => new Set(onlooker.events().map(({ id }) => id));
    await until(() => ids(all).size === 3 && ids(own).size === 2 && ids(failed).size === 1);
    expect(ids(failed)).toEqual(new Set([bad.runId]));
    expect(ids(own)).toEqual(new Set([bad.runId, good.runId]));
    expect(ids(all)).toEqual(new Set([bad.runId, good.runId, foreign.runId]));
  });

  it('ends when the service stops', async () => {
    const rig = await openRig();
    const onlooker = await lookOn(rig);
    rig.stop();
    await until(() => onlooker.ended());
    expect(onlooker.events()).toEqual([]);
  });

  it('says that nothing is repeated to those who come back', async () => {
    const rig = await openRig();
    const onlooker = await lookOn(rig, STREAM, { 'Last-Event-ID': 'x' });
    expect(onlooker.text()).toMatch(/^: Last-Event-ID has no effect/);
  });

  it('answers HEAD, and leaves nobody behind', async () => {
    const { rig, followers } = await openCounted();
    const answer = await rig.get(STREAM, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    await until(() => followers() === 0);
  });
});

/** The API in front of a store whose changes a test tells itself. */
async function openCounted(clock = new ManualClock(), complete = Promise.resolve()) {
  let followers = 0;
  let tell = (_runIds: readonly string[]): void => {};
  const summary = (runId: string) =>
    ({
      runId,
      projectId: PROJECT,
      app: 'x'.repeat(10_000),
      target: 'https://a.example/',
      createdAt: 0,
    }) as DeliverySummary;
  const ledger = {
    async follow(listener: (runIds: readonly string[]) => void) {
      followers += 1;
      tell = listener;
      await complete;
      return () => void (followers -= 1);
    },
    summaries: async (runIds: readonly string[]) => runIds.map(summary),
  };
  const store = { available: true, ledger } as unknown as Store;
  const rig = await serveApi({ store, runs: {} as never, clock });
  return { rig: rig as Rig, clock, followers: () => followers, tell: (...ids: string[]) => tell(ids) };
}

describe('whoever looks on', () => {
  it('is told of changes that are not told one by one', async () => {
    const { rig, tell } = await openCounted();
    const onlooker = await lookOn(rig, `${STREAM}?state=failed`);
    tell();
    await expect.poll(onlooker.text).toMatch(/\n\nevent: missed\ndata: {}\n\n$/);
  });

  it('hears something every 15 seconds', async () => {
    const { rig, clock } = await openCounted();
    const onlooker = await lookOn(rig);
    clock.advance(30_000);
    await until(() => onlooker.text().split(': still here\n\n').length === 3);
    clock.advance(14_999);
    expect(clock.nextIn).toBe(1);
  });

  it('and leaves, costs nothing more', async () => {
    const { rig, clock, followers } = await openCounted();
    const [first, second] = [await lookOn(rig), await lookOn(rig)];
    expect(followers()).toBe(1);
    first.leave();
    second.leave();
    await until(() => followers() === 0);
    expect(clock.waiting).toBe(0);
  });

  it('and leaves before there is an answer, is forgotten', async () => {
    const { promise: complete, resolve } = Promise.withResolvers<void>();
    const { rig, clock, followers } = await openCounted(new ManualClock(), complete);
    const early = connect(rig.port, '127.0.0.1').on('error', () => {});
    early.write(`GET ${STREAM} HTTP/1.1\r\nHost: test\r\n\r\n`);
    await until(() => followers() === 1);
    early.destroy();
    await rig.get(`${STREAM}?limit=0`); // by its answer, the end of the other has been seen
    resolve();
    await until(() => followers() === 0);
    expect(clock.waiting).toBe(0);
  });

  it('and does not read, is cut off', async () => {
    const { rig, followers, tell } = await openCounted();
    const slow = connect(rig.port, '127.0.0.1')
      .pause()
      .on('error', () => {});
    onTestFinished(() => void slow.destroy());
    slow.write(`GET ${STREAM} HTTP/1.1\r\nHost: test\r\n\r\n`);
    await until(() => followers() === 1);
    let told = 0;
    await until(() => {
      for (let i = 0; i < 50; i += 1)
        tell(`01a1df03-375c-7e1b-baa4-${String((told += 1)).padStart(12, '0')}`);
      return followers() === 0;
    });
    expect(told).toBeLessThan(20_000);
  });
});

/** What is told of changes, by a store that a test leads. */
async function watchOver(summaries: Ledger['summaries']) {
  let change = (_runIds: readonly string[]): void => {};
  const live = createLive({
    ledger: {
      async follow(listener) {
        change = listener;
        return () => {};
      },
      summaries,
    },
    log: silentLogger,
  });
  const seen: string[] = [];
  const watch = await live.watch();
  watch.tell(news => seen.push(...(news === 'missed' ? [news] : news.map(({ runId }) => runId))));
  return { seen, watch, change: (runIds: readonly string[]) => change(runIds) };
}

it('what changes faster than it is told is told as it is last, and nothing is told of what nobody sees', async () => {
  const gate = Promise.withResolvers<void>();
  const asked: string[][] = [];
  const { seen, watch, change } = await watchOver(async runIds => {
    asked.push([...runIds]);
    await gate.promise;
    return runIds.map(runId => ({ runId }) as DeliverySummary);
  });
  change(['a']);
  change(['b', 'c']);
  change(['b']);
  gate.resolve();
  await until(() => seen.length === 3);
  expect(asked).toEqual([['a'], ['c', 'b']]);
  expect(seen).toEqual(['a', 'c', 'b']);
  watch.end();
  change(['d']);
  expect(asked).toHaveLength(2);
});

it('what cannot be told one by one is told as missed', async () => {
  const answers = [new Error('no database'), [], []].map(answer => Promise.withResolvers<typeof answer>());
  let asked = 0;
  const { seen, change } = await watchOver(async () => {
    const answer = await answers[asked++]!.promise;
    if (answer instanceof Error) throw answer;
    return answer;
  });
  change(['a']);
  answers[0]!.resolve(new Error('no database'));
  await until(() => seen.length === 1);
  change(['b']);
  change(Array.from({ length: 10_001 }, (_, index) => `run-${index}`));
  expect(seen).toEqual(['missed', 'missed']);
  answers[1]!.resolve([]);
  await until(() => seen.length === 2);
  expect(asked).toBe(2);
});
