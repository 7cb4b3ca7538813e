/**
 * The dispatcher where other nodes use the store as well: what it does while it cannot be sure of what it
 * owns, with what others leave, and with its own at the end. What another node does to a delivery, `release`
 * does here: it takes it over and leaves it again.
 */
import { describe, expect, it, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { DeliveryRecord, Store } from '../../src/store/store.ts';
import { ManualClock } from '../support/clock.ts';
import { createRig, type Node, type Rig, type RigOptions } from './dispatcher-rig.ts';

const until = <T>(condition: () => T | Promise<T>) => vi.waitFor(condition, { timeout: 15_000, interval: 5 });

type Method = (...args: unknown[]) => Promise<unknown>;

/** Holds up the next answer of one of the store's methods; what it does is done by then. */
function holdUp(store: Store, method: 'insert' | 'beginAttempt' | 'withdrawAttempt') {
  const door = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const original = store[method].bind(store) as Method;
  const spy = vi.spyOn(store as unknown as Record<typeof method, Method>, method);
  spy.mockImplementationOnce(async (...args) => {
    const answer = await original(...args);
    answered.resolve();
    await door.promise;
    return answer;
  });
  return { spy, answered: answered.promise, open: door.resolve };
}

const settled = ({ store }: Node, runId: string): Promise<DeliveryRecord> =>
  until(async () => {
    const record = await store.find(runId);
    expect(record?.state).not.toBe('pending');
    return record!;
  });

const summary = ({ attempts }: DeliveryRecord) =>
  attempts.map(({ number, status, error }) => [number, status ?? error]);

async function idle({ dispatcher, pending }: Node): Promise<void> {
  await until(() => expect(dispatcher.size()).toEqual({ held: 0, waiting: 0, inFlight: 0 }));
  expect(pending.of('p')).toBe(0);
}

/** Accepts one on a node of its own; `accepted` may take as long as its insert is held up. */
async function acceptOne(options: RigOptions = {}, prepare: (node: Node, rig: Rig) => unknown = () => {}) {
  const rig = await createRig(options);
  const node = await rig.boot();
  await prepare(node, rig);
  const delivery = rig.delivery();
  const accepted = node.dispatcher.accept(delivery);
  return { rig, node, runId: delivery.runId, accepted };
}

describe('an attempt that was counted and then may not be sent', () => {
  it('along with the insert, is taken back and made when that is possible again', async () => {
    let insert!: ReturnType<typeof holdUp>;
    let withdraw!: ReturnType<typeof holdUp>;
    const { rig, node, runId, accepted } = await acceptOne({}, ({ store }) => {
      insert = holdUp(store, 'insert');
      withdraw = holdUp(store, 'withdrawAttempt');
    });
    await insert.answered;
    node.tenure.lapse();
    insert.open();
    await accepted;
    await withdraw.answered;
    withdraw.open();
    await until(() => expect(node.dispatcher.size()).toEqual({ held: 1, waiting: 1, inFlight: 0 }));
    expect(rig.receiver.received).toEqual([]);

    node.tenure.resume();
    expect(summary(await settled(node, runId))).toEqual([[1, 200]]);
    expect(rig.receiver.received.map(({ attempt, body }) => [attempt, body])).toEqual([[1, '{"ok":true}']]);
    await idle(node);
  });

  it('by itself, is taken back even if a new tenure has begun by then', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: ({ attempt }) => (attempt === 1 ? 404 : 200) });
    const node = await rig.boot();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    await until(() => expect(clock.nextIn).toBe(1_000));
    const begin = holdUp(node.store, 'beginAttempt');
    const withdraw = vi.spyOn(node.store, 'withdrawAttempt');
    clock.advance(1_000);
    await begin.answered;
    node.tenure.lapse();
    node.tenure.resume();
    begin.open();
    expect(summary(await settled(node, delivery.runId))).toEqual([
      [1, 404],
      [2, 200],
    ]);
    expect(rig.receiver.received.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(begin.spy).toHaveBeenCalledTimes(2);
    expect(withdraw).toHaveBeenCalledTimes(1);
    await idle(node);
  });

  it('leaves with its delivery where that was taken over', async () => {
    let insert!: ReturnType<typeof holdUp>;
    const { rig, node, runId, accepted } = await acceptOne({}, ({ store }) => {
      insert = holdUp(store, 'insert');
    });
    await insert.answered;
    node.tenure.lapse();
    expect(await node.store.release()).toBe(1);
    insert.open();
    await accepted;
    await idle(node);
    expect(rig.receiver.received).toEqual([]);

    node.tenure.resume();
    expect(summary(await settled(node, runId))).toEqual([
      [1, 'interrupted'],
      [2, 200],
    ]);
    await idle(node);
  });

  it.each(['Error', 'short'])('for want of its body (%s) waits a little, and is counted once', async kind => {
    const clock = new ManualClock();
    const { rig, node, runId } = await acceptOne({ clock, limits: { bodies: 0 } }, ({ store }) => {
      async function* pieces() {
        if (kind === 'Error') throw new Error('away');
        yield Buffer.from('{}');
        throw new Error('away');
      }
      vi.spyOn(store, 'body').mockResolvedValueOnce({ size: 5, pieces });
    });
    await until(() => expect(clock.nextIn).toBe(1_000));
    expect(rig.receiver.received).toEqual([]);
    clock.advance(1_000);
    expect(summary(await settled(node, runId))).toEqual([[1, 200]]);
    await idle(node);
  });
});

describe('without a tenure', () => {
  it('a new delivery is stored for whoever claims it', async () => {
    const rig = await createRig();
    const node = await rig.boot();
    const insert = vi.spyOn(node.store, 'insert');
    const claim = vi.spyOn(node.store, 'claim');
    node.tenure.lapse();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    expect(insert).toHaveBeenCalledWith({ ...delivery, owned: false });
    await new Promise(setImmediate);
    expect(claim).not.toHaveBeenCalled();
    expect([node.dispatcher.size().held, node.pending.of('p')]).toEqual([0, 1]);

    node.tenure.resume();
    expect(summary(await settled(node, delivery.runId))).toEqual([[1, 200]]);
    await idle(node);
  });

  it('what falls due waits for its turn', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: ({ attempt }) => (attempt === 1 ? 404 : 200) });
    const node = await rig.boot();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    await until(() => expect(clock.nextIn).toBe(1_000));
    node.tenure.lapse();
    clock.advance(1_000);
    expect(node.dispatcher.size()).toEqual({ held: 1, waiting: 1, inFlight: 0 });
    node.tenure.resume();
    expect(summary(await settled(node, delivery.runId))).toEqual([
      [1, 404],
      [2, 200],
    ]);
  });

  it('a start takes nothing up, until there is one', async () => {
    const rig = await createRig();
    const earlier = await rig.prepare();
    const delivery = rig.delivery();
    await earlier.dispatcher.accept(delivery);
    await earlier.halt();
    const node = await rig.prepare();
    node.tenure.lapse();
    await node.dispatcher.start();
    expect([node.dispatcher.size().held, node.pending.of('p')]).toEqual([0, 1]);
    node.tenure.resume();
    await settled(node, delivery.runId);
  });
});

describe('a delivery that was taken over and claimed again', () => {
  it('goes on once, while its old entry waits', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, answer: () => 404 });
    const node = await rig.boot();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    await until(() => expect(clock.nextIn).toBe(1_000));
    node.tenure.lapse();
    await node.store.release();
    node.tenure.resume();
    await until(() => expect(node.dispatcher.size().held).toBe(2));
    clock.advance(1_000);
    await until(() => expect(clock.nextIn).toBe(4_000));
    expect(node.dispatcher.size()).toEqual({ held: 1, waiting: 0, inFlight: 0 });
    expect(node.pending.of('p')).toBe(1);
    clock.advance(4_000);
    expect(summary(await settled(node, delivery.runId))).toEqual([1, 2, 3].map(number => [number, 404]));
    expect(rig.receiver.received.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    await idle(node);
  });

  it('goes on once, while its old entry is in flight', async () => {
    const door = Promise.withResolvers<number>();
    const { rig, node, runId } = await acceptOne({
      answer: ({ attempt }) => (attempt === 1 ? door.promise : 410),
    });
    await until(() => expect(rig.receiver.received).toHaveLength(1));
    node.tenure.lapse();
    await node.store.release();
    node.tenure.resume();
    const record = await settled(node, runId);
    door.resolve(200);
    await idle(node);
    expect(summary(record)).toEqual([
      [1, 'interrupted'],
      [2, 410],
    ]);
    expect(await node.store.find(runId)).toEqual(record);
  });

  it('goes on once, when the claim was faster than the answer to the insert', async () => {
    let insert!: ReturnType<typeof holdUp>;
    const { rig, node, runId, accepted } = await acceptOne({}, ({ store }) => {
      insert = holdUp(store, 'insert');
    });
    await insert.answered;
    const begin = holdUp(node.store, 'beginAttempt');
    node.tenure.lapse();
    await node.store.release();
    node.tenure.resume();
    await begin.answered;
    insert.open();
    await accepted;
    await until(() => expect(node.dispatcher.size()).toEqual({ held: 1, waiting: 0, inFlight: 1 }));
    begin.open();
    expect(summary(await settled(node, runId))).toEqual([
      [1, 'interrupted'],
      [2, 200],
    ]);
    expect(rig.receiver.received).toHaveLength(1);
    await idle(node);
  });
});

it('what another node leaves is claimed when the store tells of it', async () => {
  const rig = await createRig({ shared: true });
  const node = await rig.boot();
  await until(async () => expect(await node.store.claim(1)).toEqual([]));
  const delivery = rig.delivery();
  await node.store.insert({ ...delivery, owned: false });
  node.tenure.tell();
  expect(summary(await settled(node, delivery.runId))).toEqual([[1, 200]]);
});

describe('the deliveries of other nodes', () => {
  it('count as pending once they have been read, every 10 s', async () => {
    const clock = new ManualClock();
    const rig = await createRig({ clock, shared: true, answer: () => new Promise(() => {}) });
    const node = await rig.boot();
    await node.dispatcher.accept(rig.delivery());
    for (let count = 0; count < 3; count += 1) await node.store.insert({ ...rig.delivery(), owned: false });
    expect(node.pending.of('p')).toBe(1);
    clock.advance(10_000);
    await until(() => expect(node.pending.of('p')).toBe(4));
    await until(() => expect(clock.nextIn).toBe(5_000)); // the deadline of the attempt
    const { waiting } = clock;
    await node.dispatcher.stop({ graceMs: 0 });
    expect([waiting, clock.waiting]).toEqual([2, 1]);
  });

  it('do not blur the count of our own, however often they are read', async () => {
    const often: Clock = {
      ...systemClock,
      after: (ms, task) => systemClock.after(ms === 10_000 ? 1 : ms, task),
    };
    const rig = await createRig({ clock: often, shared: true });
    const node = await rig.boot();
    const backlog = vi.spyOn(node.store, 'backlog');
    for (let batch = 0; batch < 40; batch += 1) {
      await Promise.all(Array.from({ length: 20 }, () => node.dispatcher.accept(rig.delivery())));
    }
    await until(() => expect(rig.receiver.received).toHaveLength(800));
    await idle(node);
    expect(backlog.mock.calls.length).toBeGreaterThan(5);
  });
});

describe('a node that does not send', () => {
  it('stores deliveries for others, and only counts', async () => {
    const rig = await createRig({ sends: false, shared: true });
    const earlier = await rig.prepare();
    await earlier.dispatcher.accept(rig.delivery());
    await earlier.halt();

    const node = await rig.prepare();
    const untouched = (['recover', 'claim', 'watch', 'beginAttempt', 'release'] as const).map(method =>
      vi.spyOn(node.store, method),
    );
    await node.dispatcher.start();
    const delivery = rig.delivery();
    await node.dispatcher.accept(delivery);
    await new Promise(setImmediate);
    expect(node.pending.of('p')).toBe(2);
    expect(node.dispatcher.size()).toEqual({ held: 0, waiting: 0, inFlight: 0 });
    await node.dispatcher.stop({ graceMs: 1_000 });
    await node.dispatcher.handBack();
    for (const method of untouched) expect(method).not.toHaveBeenCalled();
    expect(rig.receiver.received).toEqual([]);
    expect(await node.store.claim(10)).toHaveLength(2);
  });
});

describe('handing back', () => {
  async function stopped(options: RigOptions = {}) {
    const rig = await createRig({ answer: () => new Promise(() => {}), ...options });
    const node = await rig.boot();
    const deliveries = [rig.delivery(), rig.delivery()];
    await node.dispatcher.accept(deliveries[0]!);
    await until(() => expect(rig.receiver.received).toHaveLength(1));
    await node.dispatcher.accept(deliveries[1]!);
    await until(() => expect(node.dispatcher.size()).toMatchObject({ held: 2, inFlight: 1 }));
    await node.dispatcher.stop({ graceMs: 0 });
    await node.sender.close();
    return { rig, node, runIds: deliveries.map(({ runId }) => runId) };
  }

  it('leaves all to others at once, the attempt that was cut off as interrupted', async () => {
    const { rig, node, runIds } = await stopped({ limits: { concurrency: 1 } });
    await node.dispatcher.handBack();
    expect(node.dispatcher.size()).toEqual({ held: 0, waiting: 0, inFlight: 0 });
    const claimed = await node.store.claim(10);
    expect(claimed.map(({ runId, attempts }) => [runId, attempts])).toEqual([
      [runIds[0], 1],
      [runIds[1], 0],
    ]);
    expect(summary((await node.store.find(runIds[0]!))!)).toEqual([[1, 'interrupted']]);
    expect(rig.receiver.received).toHaveLength(1);
    expect(rig.lines).toContainEqual(expect.objectContaining({ msg: 'deliveries handed back', count: 2 }));
  });

  it('waits a few seconds for a store that cannot write, and tells', async () => {
    const clock = new ManualClock();
    const { rig, node } = await stopped({ clock, limits: { concurrency: 1 } });
    vi.spyOn(node.store, 'release').mockReturnValue(new Promise(() => {}));
    const handedBack = node.dispatcher.handBack();
    clock.advance(3_000);
    await handedBack;
    expect(node.dispatcher.size().held).toBe(2);
    expect(rig.lines).toContainEqual(expect.objectContaining({ level: 'warn' }));
  });

  it('does not reject where the store refuses, and tells', async () => {
    const { rig, node } = await stopped({ limits: { concurrency: 1 } });
    vi.spyOn(node.store, 'release').mockRejectedValue(new Error('closed'));
    await node.dispatcher.handBack();
    expect(rig.lines).toContainEqual(expect.objectContaining({ level: 'warn' }));
  });
});
