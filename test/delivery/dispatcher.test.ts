import { describe, expect, it, vi } from 'vitest';
import type { DeliveryRecord, NewDelivery } from '../../src/store/store.ts';
import { ManualClock } from '../support/clock.ts';
import { closedPort } from '../support/receivers.ts';
import { createRig, type Node, type Received, type Rig } from './dispatcher-rig.ts';

const until = <T>(condition: () => T | Promise<T>) => vi.waitFor(condition, { timeout: 15_000, interval: 5 });

/** A door that requests wait at. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: resolve };
}

const never = new Promise<number>(() => {});

function settled({ store }: Node, runId: string): Promise<DeliveryRecord> {
  return until(async () => {
    const record = await store.find(runId);
    expect(record?.state).not.toBe('pending');
    return record!;
  });
}

/** Moves the clock to each retry as soon as nothing else is left to happen. */
function driven(node: Node, clock: ManualClock, runId: string): Promise<DeliveryRecord> {
  return until(async () => {
    const { waiting, inFlight } = node.dispatcher.size();
    if (waiting + inFlight === 0 && clock.nextIn !== undefined) clock.advance(clock.nextIn);
    const record = await node.store.find(runId);
    expect(record?.state).not.toBe('pending');
    return record!;
  });
}

async function acceptMany(
  rig: Rig,
  node: Node,
  count: number,
  given: (index: number) => Partial<NewDelivery>,
) {
  const deliveries = Array.from({ length: count }, (_, index) => rig.delivery(given(index)));
  await Promise.all(deliveries.map(delivery => node.dispatcher.accept(delivery)));
  return deliveries.map(delivery => delivery.runId);
}

const idle = (node: Node) =>
  until(() => expect(node.dispatcher.size()).toEqual({ held: 0, waiting: 0, inFlight: 0 }));

/** Nothing in memory does not mean that nothing is left in the store. */
async function finished(node: Node, ...projects: string[]): Promise<void> {
  await until(() => expect(projects.filter(project => node.pending.of(project) > 0)).toEqual([]));
  await idle(node);
}

const runIds = (received: readonly Received[]) => received.map(one => one.runId);
const summary = ({ attempts }: DeliveryRecord) =>
  attempts.map(({ number, status, error }) => [number, status ?? error]);

/** Deliveries of an earlier process that it did not get to: their attempts are counted by `beginAttempt`. */
async function leave(rig: Rig, count: number): Promise<string[]> {
  const earlier = await rig.prepare();
  const runIds = await acceptMany(rig, earlier, count, () => ({}));
  await earlier.halt();
  return runIds;
}

describe('a delivery', () => {
  it.each([
    ['2xx', 204, { state: 'delivered' }, [[1, 204]]],
    [
      '404',
      404,
      { state: 'failed', reason: 'exhausted' },
      [
        [1, 404],
        [2, 404],
        [3, 404],
      ],
    ],
    ['another 4xx', 410, { state: 'failed', reason: 'rejected' }, [[1, 410]]],
    ['5xx', 503, { state: 'failed', reason: 'rejected' }, [[1, 503]]],
    [
      '3xx',
      302,
      { state: 'failed', reason: 'exhausted' },
      [
        [1, 302],
        [2, 302],
        [3, 302],
      ],
    ],
  ] as const)('answered with %s ends as it should', async (_, status, end, attempts) => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: () => status });
    const node = await rig.boot();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    const record = await driven(node, clock, delivery.runId);
    expect(record).toMatchObject(end);
    expect(summary(record)).toEqual(attempts);
    expect(rig.receiver.received).toHaveLength(attempts.length);
    await finished(node, 'p');
  });

  it('is tried again until the receiver takes it', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: ({ attempt }) => (attempt < 3 ? 404 : 200) });
    const node = await rig.boot();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    const record = await driven(node, clock, delivery.runId);
    expect(record.state).toBe('delivered');
    expect(rig.receiver.received.map(one => one.attempt)).toEqual([1, 2, 3]);
    expect(new Set(rig.receiver.received.map(one => one.body))).toEqual(new Set(['{"ok":true}']));
  });

  it('to a port where nobody listens is tried three times', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock });
    const node = await rig.boot();
    const delivery = rig.delivery({ target: `http://a.test:${await closedPort()}/` });
    await node.dispatcher.accept(delivery);
    const record = await driven(node, clock, delivery.runId);
    expect(record.reason).toBe('exhausted');
    expect(summary(record)).toEqual([1, 2, 3].map(number => [number, 'connection_refused']));
  });

  it('to a forbidden address is tried once', async () => {
    const rig = await createRig();
    const node = await rig.boot();
    const delivery = rig.delivery({ target: 'http://10.1.2.3/' });
    await node.dispatcher.accept(delivery);
    const record = await settled(node, delivery.runId);
    expect(record.reason).toBe('blocked');
    expect(summary(record)).toEqual([[1, 'blocked_target']]);
  });

  it('waits about 1 s, then about 4 s, from the end of an attempt', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: () => 404 });
    const node = await rig.boot();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    for (const [made, gap] of [
      [1, 1_000],
      [2, 4_000],
    ] as const) {
      await until(() => expect(clock.nextIn).toBe(gap));
      expect(node.dispatcher.size().inFlight).toBe(0);
      expect(rig.receiver.received).toHaveLength(made);
      expect((await node.store.find(delivery.runId))?.dueAt).toBe(clock.now() + gap);
      clock.advance(gap - 1);
      expect(node.dispatcher.size()).toEqual({ held: 1, waiting: 0, inFlight: 0 });
      clock.advance(1);
      expect(node.dispatcher.size().inFlight).toBe(1);
    }
    expect((await settled(node, delivery.runId)).reason).toBe('exhausted');
    expect(clock.waiting).toBe(0);
  });

  it('that is due again goes before first attempts to its target', async () => {
    const clock = new ManualClock();
    const door = gate();
    const rig = await createRig({
      clock,
      answer: ({ body, attempt }) => (body === '0' && attempt === 1 ? 404 : door.passed.then(() => 200)),
      limits: { concurrency: 1, perTarget: 1 },
    });
    const node = await rig.boot();
    for (const body of ['0', '1', '2', '3']) {
      await node.dispatcher.accept(rig.delivery({ body: { bytes: Buffer.from(body) } }));
    }
    await until(() => expect(node.dispatcher.size()).toEqual({ held: 4, waiting: 2, inFlight: 1 }));
    await until(() => expect(clock.nextIn).toBe(1_000));
    clock.advance(1_000);
    expect(node.dispatcher.size()).toEqual({ held: 4, waiting: 3, inFlight: 1 });
    door.open();
    await finished(node, 'p');
    expect(rig.receiver.received.map(one => one.body)).toEqual(['0', '1', '0', '2', '3']);
  });

  it('whose body is gone from the store fails at once', async () => {
    const rig = await createRig({ limits: { bodies: 0 } });
    const node = await rig.boot();
    vi.spyOn(node.store, 'body').mockResolvedValue(undefined);
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    const record = await settled(node, delivery.runId);
    expect(record).toMatchObject({ state: 'failed', reason: 'exhausted' });
    expect(summary(record)).toEqual([[1, 'body_missing']]);
    expect(rig.receiver.received).toEqual([]);
  });

  it.each(['beginAttempt', 'endAttempt'] as const)(
    'that is no longer ours at %s leaves without a word',
    async method => {
      const events: string[] = [];
      const rig = await createRig({ events: { settled: ({ state }) => events.push(state) } });
      await leave(rig, 1);
      const node = await rig.prepare();
      vi.spyOn(node.store, method).mockResolvedValueOnce(false);
      await node.dispatcher.start();
      await finished(node, 'p');
      expect(rig.receiver.received).toHaveLength(method === 'beginAttempt' ? 0 : 1);
      expect(events).toEqual([]);
      expect(rig.lines.filter(({ level }) => level === 'error')).toEqual([]);
    },
  );
});

describe('accept', () => {
  it('resolves when the delivery is durable, and before it is sent', async () => {
    const rig = await createRig();
    const node = await rig.boot();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    expect(node.dispatcher.size()).toEqual({ held: 1, waiting: 0, inFlight: 1 });
    expect(rig.receiver.received).toEqual([]);
    expect(await node.store.find(delivery.runId)).toBeDefined();
    expect((await settled(node, delivery.runId)).state).toBe('delivered');
  });

  it('counts the first attempt with the insert where nobody waits, and gives the slot back if that fails', async () => {
    const rig = await createRig({ limits: { concurrency: 1, perTarget: 1 } });
    const node = await rig.boot();
    const begin = vi.spyOn(node.store, 'beginAttempt');
    vi.spyOn(node.store, 'insert').mockRejectedValueOnce(new Error('refused'));
    await expect(node.dispatcher.accept(rig.delivery())).rejects.toThrow('refused');
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    expect(summary(await settled(node, delivery.runId))).toEqual([[1, 200]]);
    expect(begin).not.toHaveBeenCalled();
  });

  it('rejects, tells and forgets what the store refuses', async () => {
    const told: string[] = [];
    const rig = await createRig({
      events: { made: () => told.push('made'), storeFailed: operation => told.push(operation) },
    });
    const node = await rig.boot();
    vi.spyOn(node.store, 'insert').mockRejectedValueOnce(new Error('refused'));
    await expect(node.dispatcher.accept(rig.delivery())).rejects.toThrow('refused');
    expect(node.dispatcher.size().held).toBe(0);
    expect(node.pending.of('p')).toBe(0);
    expect(told).toEqual(['insert_delivery']);
  });

  it('after a stop leaves the delivery to the next start', async () => {
    const rig = await createRig();
    const first = await rig.boot();
    await first.dispatcher.stop({ graceMs: 0 });
    const delivery = rig.delivery();
    await first.dispatcher.accept(delivery);
    await first.halt();
    expect(rig.receiver.received).toEqual([]);
    const second = await rig.boot();
    expect((await settled(second, delivery.runId)).state).toBe('delivered');
  });
});

describe('many deliveries', () => {
  it('arrive exactly once each when nothing fails', async () => {
    const rig = await createRig();
    const node = await rig.boot();
    const accepted = await acceptMany(rig, node, 2_000, index => ({
      projectId: `p${index % 4}`,
      target: rig.receiver.target(`t${index % 20}`),
      body: { bytes: Buffer.from(`{"index":${index}}`) },
    }));
    await finished(node, 'p0', 'p1', 'p2', 'p3');
    expect(rig.receiver.received).toHaveLength(2_000);
    const bodies = new Map(rig.receiver.received.map(one => [one.runId, one.body]));
    expect(accepted.filter((runId, index) => bodies.get(runId) !== `{"index":${index}}`)).toEqual([]);
    expect((await node.store.backlog()).pending.size).toBe(0);
  });

  it('to a receiver that hangs do not delay those to another', async () => {
    const rig = await createRig({ answer: ({ host }) => (host === 'sick' ? never : 200) });
    const node = await rig.boot();
    await acceptMany(rig, node, 1_000, () => ({ target: rig.receiver.target('sick') }));
    await until(() => expect(node.dispatcher.size().inFlight).toBe(32));
    const healthy = await acceptMany(rig, node, 50, () => ({ target: rig.receiver.target('healthy') }));
    for (const runId of healthy) expect((await settled(node, runId)).state).toBe('delivered');
    expect(node.dispatcher.size()).toEqual({ held: 1_000, waiting: 968, inFlight: 32 });
  });

  it('to a receiver that hangs do not fill the memory for those to another', async () => {
    const rig = await createRig({
      answer: ({ host }) => (host === 'sick' ? never : 200),
      limits: { memory: 200 },
    });
    const node = await rig.boot();
    await acceptMany(rig, node, 1_000, () => ({ target: rig.receiver.target('sick') }));
    await until(() => expect(node.dispatcher.size().held).toBe(150));
    const delivery = rig.delivery({ target: rig.receiver.target('healthy') });
    await node.dispatcher.accept(delivery);
    expect((await settled(node, delivery.runId)).state).toBe('delivered');
    expect(node.pending.of('p')).toBe(1_000);
  });

  it('beyond the bound of memory are claimed later, roughly in order', async () => {
    const door = gate();
    const rig = await createRig({
      answer: () => door.passed.then(() => 200),
      limits: { memory: 40, concurrency: 4, perTarget: 4 },
    });
    const node = await rig.boot();
    const accepted: string[] = [];
    for (let index = 0; index < 200; index += 1) {
      const delivery = rig.delivery();
      await node.dispatcher.accept(delivery);
      accepted.push(delivery.runId);
      expect(node.dispatcher.size().held).toBeLessThanOrEqual(40);
    }
    expect(node.pending.of('p')).toBe(200);
    door.open();
    await finished(node, 'p');
    const order = runIds(rig.receiver.received);
    expect(order).toHaveLength(200);
    expect(new Set(order)).toEqual(new Set(accepted));
    const displaced = order.map((runId, index) => Math.abs(accepted.indexOf(runId) - index));
    expect(Math.max(...displaced)).toBeLessThanOrEqual(40);
  });

  it('stay within memory while the store cannot write, and go on afterwards', async () => {
    const door = gate();
    const rig = await createRig({ limits: { memory: 20 } });
    const node = await rig.boot();
    const endAttempt = node.store.endAttempt.bind(node.store);
    vi.spyOn(node.store, 'endAttempt').mockImplementation(async (...ended) => {
      await door.passed;
      return endAttempt(...ended);
    });
    const accepted = await acceptMany(rig, node, 100, () => ({}));
    // One target: a quarter of the memory by hand-off, half of it by claims.
    await until(() => expect(rig.receiver.received).toHaveLength(15));
    await until(() => expect(node.dispatcher.size()).toEqual({ held: 15, waiting: 0, inFlight: 0 }));
    door.open();
    await finished(node, 'p');
    expect(rig.receiver.received).toHaveLength(100);
    expect(new Set(runIds(rig.receiver.received))).toEqual(new Set(accepted));
  });

  it('use no more slots than there are while attempts cannot be counted', async () => {
    const door = gate();
    const rig = await createRig({ limits: { concurrency: 5, perTarget: 5 } });
    await leave(rig, 50);
    const node = await rig.prepare();
    const beginAttempt = node.store.beginAttempt.bind(node.store);
    vi.spyOn(node.store, 'beginAttempt').mockImplementation(async (...begun) => {
      await door.passed;
      return beginAttempt(...begun);
    });
    await node.dispatcher.start();
    await until(() => expect(node.dispatcher.size()).toEqual({ held: 50, waiting: 45, inFlight: 5 }));
    expect(rig.receiver.received).toEqual([]);
    door.open();
    await finished(node, 'p');
    expect(rig.receiver.received).toHaveLength(50);
  });

  it('keep their bodies in memory within the budget, and read the others from the store', async () => {
    const door = gate();
    const rig = await createRig({
      answer: () => door.passed.then(() => 200),
      limits: { concurrency: 1, perTarget: 1, bodies: 25 },
    });
    const node = await rig.boot();
    const body = vi.spyOn(node.store, 'body');
    const given = (index: number) => ({ body: { bytes: Buffer.from(`"${index}-345678"`) } });
    await node.dispatcher.accept(rig.delivery(given(0)));
    await until(() => expect(node.dispatcher.size().inFlight).toBe(1));
    await acceptMany(rig, node, 4, index => given(index + 1));
    await until(() => expect(node.dispatcher.size().waiting).toBe(4));
    door.open();
    await finished(node, 'p');
    expect(body).toHaveBeenCalledTimes(2);
    expect(rig.receiver.received.map(one => one.body)).toEqual(
      [0, 1, 2, 3, 4].map(index => `"${index}-345678"`),
    );
  });
});

describe('a restart', () => {
  it('goes on with a round where it was, at its time', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: () => 404 });
    const first = await rig.boot();
    const delivery = rig.delivery();
    await first.dispatcher.accept(delivery);
    await until(() => expect(clock.nextIn).toBe(1_000));
    await first.dispatcher.stop({ graceMs: 1_000 });
    expect(clock.waiting).toBe(0);
    await first.halt();

    clock.advance(400);
    const second = await rig.boot();
    expect(second.pending.of('p')).toBe(1);
    await until(() => expect(clock.nextIn).toBe(600));
    const record = await driven(second, clock, delivery.runId);
    expect(record.reason).toBe('exhausted');
    expect(rig.receiver.received.map(one => one.attempt)).toEqual([1, 2, 3]);
    expect(second.pending.of('p')).toBe(0);
  });

  it('gives a round that was cut off in its third attempt one more', async () => {
    const clock = new ManualClock();
    let count = 0;
    const rig = await createRig({
      clock,
      answer: () => {
        count += 1;
        return count === 3 ? never : count === 4 ? 200 : 404;
      },
    });
    const first = await rig.boot();
    const delivery = rig.delivery();
    await first.dispatcher.accept(delivery);
    for (const gap of [1_000, 4_000]) {
      await until(() => expect(clock.nextIn).toBe(gap));
      clock.advance(gap);
    }
    await until(() => expect(rig.receiver.received).toHaveLength(3));
    await first.halt();

    const second = await rig.boot();
    const record = await settled(second, delivery.runId);
    expect(record.state).toBe('delivered');
    expect(summary(record)).toEqual([
      [1, 404],
      [2, 404],
      [3, 'interrupted'],
      [3, 200],
    ]);
  });

  it('takes up a whole backlog, in batches', async () => {
    const rig = await createRig({ limits: { memory: 20 } });
    const first = await rig.prepare();
    const accepted = await acceptMany(rig, first, 100, index => ({ projectId: `p${index % 2}` }));
    await first.halt();
    const second = await rig.boot();
    expect([second.pending.of('p0'), second.pending.of('p1')]).toEqual([50, 50]);
    await finished(second, 'p0', 'p1');
    expect(new Set(runIds(rig.receiver.received))).toEqual(new Set(accepted));
    expect(rig.receiver.received).toHaveLength(100);
  });
});

describe('stop', () => {
  it('lets attempts in flight end and leaves the rest to the next start', async () => {
    const door = gate();
    const rig = await createRig({
      answer: () => door.passed.then(() => 200),
      limits: { concurrency: 3, perTarget: 3 },
    });
    const first = await rig.boot();
    const accepted = await acceptMany(rig, first, 10, () => ({}));
    await until(() => expect(rig.receiver.received).toHaveLength(3));
    const stopped = first.dispatcher.stop({ graceMs: 10_000 });
    door.open();
    await stopped;
    expect(rig.receiver.received).toHaveLength(3);
    expect((await first.store.backlog()).pending.get('p')).toBe(7);
    await first.halt();

    const second = await rig.boot();
    await finished(second, 'p');
    expect(runIds(rig.receiver.received).toSorted()).toEqual(accepted.toSorted());
  });

  it('waits no longer than the grace', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: () => never });
    const node = await rig.boot();
    await node.dispatcher.accept(rig.delivery());
    await until(() => expect(rig.receiver.received).toHaveLength(1));
    let isStopped = false;
    const stopped = node.dispatcher.stop({ graceMs: 5_000 }).then(() => (isStopped = true));
    clock.advance(4_999);
    await node.store.backlog();
    expect(isStopped).toBe(false);
    clock.advance(1);
    await stopped;
  });

  it('called again without grace ends at once, and an outcome that comes too late is not written', async () => {
    const door = gate();
    const rig = await createRig({ answer: () => door.passed.then(() => 200) });
    const first = await rig.boot();
    const delivery = rig.delivery();
    await first.dispatcher.accept(delivery);
    await until(() => expect(rig.receiver.received).toHaveLength(1));
    const patient = first.dispatcher.stop({ graceMs: 60_000 });
    await first.dispatcher.stop({ graceMs: 0 });
    await patient;
    door.open();
    await until(() => expect(first.dispatcher.size().inFlight).toBe(0));
    expect(await first.store.find(delivery.runId)).toMatchObject({ state: 'pending', attempts: [] });
    await first.halt();

    const second = await rig.boot();
    const record = await settled(second, delivery.runId);
    expect(summary(record)).toEqual([
      [1, 'interrupted'],
      [2, 200],
    ]);
  });

  it('before start, and twice, does no harm', async () => {
    const rig = await createRig();
    const node = await rig.prepare();
    await node.dispatcher.stop({ graceMs: 1_000 });
    await node.dispatcher.stop({ graceMs: 1_000 });
    expect(node.dispatcher.size()).toEqual({ held: 0, waiting: 0, inFlight: 0 });
  });
});

describe('what is told', () => {
  it('is one line per attempt and one for a failure, without secret, query and credentials', async () => {
    const rig = await createRig({ answer: () => 410 });
    const node = await rig.boot();
    const delivery = rig.delivery({
      target: rig.receiver.target('a', '/hook?token=in-the-query'),
      confidential: { secret: Buffer.from('in-the-secret'), authorization: 'Basic in-the-credentials' },
    });
    await node.dispatcher.accept(delivery);
    await settled(node, delivery.runId);
    await idle(node);
    const target = rig.receiver.target('a', '/hook');
    const { runId: run_id } = delivery;
    const told = rig.lines.filter(({ msg }) => msg === 'attempt' || msg === 'delivery failed');
    expect(told).toEqual([
      {
        level: 'info',
        time: expect.any(String),
        run_id,
        project_id: 'p',
        app: 'hello',
        target,
        attempt: 1,
        round: 1,
        status: 410,
        duration_ms: expect.any(Number),
        next: 'failed',
        msg: 'attempt',
      },
      {
        level: 'error',
        time: expect.any(String),
        run_id,
        target,
        reason: 'rejected',
        status: 410,
        msg: 'delivery failed',
      },
    ]);
    expect(JSON.stringify(rig.lines)).not.toMatch(/in-the-/);
  });

  it('is an event per delivery, per attempt and per settled delivery', async () => {
    const clock = new ManualClock();
    const told: unknown[] = [];
    const rig = await createRig({
      clock,
      answer: ({ attempt }) => (attempt === 1 ? 404 : 200),
      events: {
        made: () => told.push('made'),
        attempt: result => told.push(result),
        settled: next => told.push(next),
      },
    });
    const node = await rig.boot();
    const delivery = rig.delivery({ createdAt: clock.now() - 30 });
    await node.dispatcher.accept(delivery);
    await driven(node, clock, delivery.runId);
    await idle(node);
    expect(told).toMatchObject([
      'made',
      { number: 1, status: 404, timings: { queueMs: 30, totalMs: 0 } },
      { number: 2, status: 200, timings: { queueMs: 0, totalMs: 0 } },
      { state: 'delivered' },
    ]);
  });
});

describe('a fault of the store', () => {
  it('in an attempt costs that delivery alone, until the next start', async () => {
    const rig = await createRig();
    const [lost, ...others] = await leave(rig, 3);
    const first = await rig.prepare();
    vi.spyOn(first.store, 'beginAttempt').mockRejectedValueOnce(new Error('broken'));
    await first.dispatcher.start();
    await until(() => expect(first.pending.of('p')).toBe(1));
    expect(new Set(runIds(rig.receiver.received))).toEqual(new Set(others));
    expect(first.pending.of('p')).toBe(1);
    expect(rig.lines.filter(({ level }) => level === 'error')).toMatchObject([{ msg: 'dispatcher fault' }]);
    await first.halt();
    const second = await rig.boot();
    expect((await settled(second, lost!)).state).toBe('delivered');
  });

  it('in a claim is followed by another claim', async () => {
    const rig = await createRig();
    const [left] = await leave(rig, 1);
    const second = await rig.prepare();
    vi.spyOn(second.store, 'claim').mockRejectedValueOnce(new Error('broken'));
    await second.dispatcher.start();
    await second.dispatcher.accept(rig.delivery());
    expect((await settled(second, left!)).state).toBe('delivered');
  });
});
