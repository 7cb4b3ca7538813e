import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Turn, type TurnLimits, Turns } from '../../src/delivery/turns.ts';

interface Entry extends Turn {
  readonly id: number;
}

let ids = 0;

function entry(projectId: string, origin: string, repeated = false): Entry {
  ids += 1;
  return { id: ids, projectId, origin, repeated };
}

function entries(count: number, projectId: string, origin: string): Entry[] {
  return Array.from({ length: count }, () => entry(projectId, origin));
}

function filled(limits: TurnLimits, ...waiting: Entry[][]): Turns<Entry> {
  const turns = new Turns<Entry>(limits);
  for (const one of waiting.flat()) turns.push(one);
  return turns;
}

/** Serves until nothing more can be served. */
function drain(turns: Turns<Entry>): Entry[] {
  const served: Entry[] = [];
  for (let one = turns.next(); one !== undefined; one = turns.next()) served.push(one);
  return served;
}

const count = (served: readonly Entry[], wanted: Partial<Entry>) =>
  served.filter(one => Object.entries(wanted).every(([key, value]) => one[key as keyof Entry] === value))
    .length;

describe('turns', () => {
  it('serves projects in turn, and targets in turn within a project', () => {
    const turns = filled(
      { concurrency: 1_000, perTarget: 1_000 },
      entries(3, 'p', 'a'),
      entries(3, 'p', 'b'),
      entries(3, 'q', 'c'),
    );
    const order = drain(turns).map(one => `${one.projectId}${one.origin}`);
    expect(order).toEqual(['pa', 'qc', 'pb', 'qc', 'pa', 'qc', 'pb', 'pa', 'pb']);
  });

  it('serves a repeated attempt before the first ones to the same target', () => {
    const turns = filled({ concurrency: 10, perTarget: 10 }, entries(2, 'p', 'a'), [entry('p', 'a', true)]);
    expect(drain(turns).map(one => one.repeated)).toEqual([true, false, false]);
  });

  it('lets a target alone use every slot up to perTarget', () => {
    const turns = filled({ concurrency: 256, perTarget: 32 }, entries(100, 'p', 'a'));
    expect(drain(turns)).toHaveLength(32);
    expect(turns.waiting).toBe(68);
    expect(turns.inFlight).toBe(32);
  });

  it('counts a target once, whichever projects send to it', () => {
    const turns = filled({ concurrency: 256, perTarget: 32 }, entries(100, 'p', 'a'), entries(100, 'q', 'a'));
    const served = drain(turns);
    expect([count(served, { projectId: 'p' }), count(served, { projectId: 'q' })]).toEqual([16, 16]);
  });

  it('holds a target at a tenth of the slots while another target of its project waits', () => {
    const turns = filled({ concurrency: 100, perTarget: 100 }, entries(500, 'p', 'a'), entries(1, 'p', 'b'));
    const served = drain(turns);
    const before = served.slice(
      0,
      served.findIndex(one => one.origin === 'b'),
    );
    expect(before.length).toBeLessThanOrEqual(10);
    expect(served).toHaveLength(100);
  });

  it('holds a project at a fifth of the slots while another project waits', () => {
    const many = Array.from({ length: 50 }, (_, index) => entries(10, 'greedy', `t${index}`));
    const turns = filled({ concurrency: 100, perTarget: 100 }, ...many);
    for (let served = 0; served < 20; served += 1) turns.next();
    for (const one of entries(10, 'modest', 'm')) turns.push(one);
    const following = Array.from({ length: 10 }, () => turns.next()?.projectId);
    expect(following).toEqual(Array(10).fill('modest'));
  });

  it('prefers a project beyond its share to a target beyond its own', () => {
    const healthy = Array.from({ length: 30 }, (_, index) => entries(1, 'p', `t${index}`));
    const turns = filled({ concurrency: 100, perTarget: 32 }, entries(500, 'p', 'sick'), ...healthy);
    const served = drain(turns);
    expect(count(served.slice(0, 40), { origin: 'sick' })).toBe(10);
    expect(count(served, { origin: 'sick' })).toBe(32);
  });

  it('serves an entry at once only where nobody waits and a slot is free', () => {
    const turns = new Turns<Turn>({ concurrency: 3, perTarget: 2 });
    const entry = (origin: string): Turn => ({ projectId: 'p', origin, repeated: false });
    expect([turns.take(entry('a')), turns.take(entry('a'))]).toEqual([true, true]);
    expect(turns.take(entry('a'))).toBe(false); // the target has all it may
    turns.push(entry('b'));
    expect(turns.take(entry('c'))).toBe(false); // b waits
    expect(turns.next()).toEqual(entry('b'));
    expect(turns.take(entry('c'))).toBe(false); // no slot left
    turns.done(entry('a'));
    expect(turns.take(entry('c'))).toBe(true);
    expect(turns.inFlight).toBe(3);
  });

  it('refuses a done that had no turn', () => {
    const one = entry('p', 'a');
    const turns = filled({ concurrency: 1, perTarget: 1 }, [one]);
    expect(() => turns.done(one)).toThrow('done without a turn');
    turns.next();
    turns.done(one);
    expect(() => turns.done(one)).toThrow('done without a turn');
  });

  it('lets 50,000 entries of a sick target cost the others nothing', () => {
    const turns = filled({ concurrency: 256, perTarget: 32 }, entries(50_000, 'p', 'sick'));
    expect(drain(turns)).toHaveLength(32);
    const healthy = entries(50_000, 'p', 'healthy');
    const started = performance.now();
    const passedOver = healthy.filter(one => {
      turns.push(one);
      const served = turns.next();
      turns.done(one);
      return served !== one;
    });
    // Walking the waiting entries would take minutes.
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(passedOver).toEqual([]);
  });
});

type Step = { push: Omit<Entry, 'id'> } | 'next' | { done: number };

const step = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.record({
    push: fc.record({
      projectId: fc.constantFrom('p', 'q', 'r'),
      origin: fc.constantFrom('a', 'b', 'c', 'd'),
      repeated: fc.boolean(),
    }),
  }),
  fc.constant('next'),
  fc.record({ done: fc.nat() }),
);

const limits = fc.record({
  concurrency: fc.integer({ min: 1, max: 30 }),
  perTarget: fc.integer({ min: 1, max: 12 }),
});

/** The same rules over plain arrays: slow, and plain to see. */
class Model {
  readonly waiting: Entry[] = [];
  readonly inFlight: Entry[] = [];
  readonly limits: TurnLimits;

  constructor(limits: TurnLimits) {
    this.limits = limits;
  }

  rank({ projectId, origin }: Entry): number {
    const { concurrency, perTarget } = this.limits;
    const target = count(this.inFlight, { origin });
    if (this.inFlight.length >= concurrency || target >= perTarget) return Number.POSITIVE_INFINITY;
    const beyondTarget = target >= Math.max(1, Math.floor(concurrency / 10));
    const beyondProject = count(this.inFlight, { projectId }) >= Math.max(1, Math.floor(concurrency / 5));
    return Number(beyondTarget) * 2 + Number(beyondProject);
  }

  /** The rank of the best that waits; without end where none can be served. */
  bestRank(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.waiting.map(one => this.rank(one)));
  }

  /** Who comes first among those for the same target. */
  firstLike({ projectId, origin }: Entry): Entry | undefined {
    const line = this.waiting.filter(one => one.projectId === projectId && one.origin === origin);
    return line.find(one => one.repeated) ?? line[0];
  }

  serve(served: Entry): void {
    this.waiting.splice(this.waiting.indexOf(served), 1);
    this.inFlight.push(served);
  }
}

/** What `next` gave, beside what the model says of it. */
function compareNext(turns: Turns<Entry>, model: Model): [actual: unknown[], expected: unknown[]] {
  const best = model.bestRank();
  const served = turns.next();
  if (served === undefined) return [[Number.POSITIVE_INFINITY], [best]];
  const compared: [unknown[], unknown[]] = [
    [model.rank(served), served],
    [best, model.firstLike(served)],
  ];
  model.serve(served);
  return compared;
}

function take(step: Step, turns: Turns<Entry>, model: Model): [actual: unknown[], expected: unknown[]] {
  if (step === 'next') return compareNext(turns, model);
  if ('push' in step) {
    const pushed = entry(step.push.projectId, step.push.origin, step.push.repeated);
    turns.push(pushed);
    model.waiting.push(pushed);
  } else if (model.inFlight.length > 0) {
    const [ended] = model.inFlight.splice(step.done % model.inFlight.length, 1);
    turns.done(ended!);
  }
  return [[], []];
}

describe('turns, whatever happens', () => {
  it('keeps the limits, the shares and the order, and never idles', () => {
    fc.assert(
      fc.property(limits, fc.array(step, { maxLength: 200 }), (limits, steps) => {
        const turns = new Turns<Entry>(limits);
        const model = new Model(limits);
        for (const one of steps) {
          const [actual, expected] = take(one, turns, model);
          expect(actual).toEqual(expected);
          expect([turns.waiting, turns.inFlight]).toEqual([model.waiting.length, model.inFlight.length]);
        }
      }),
      { numRuns: 300 },
    );
  });

  const lots = fc.array(
    fc.record({
      projectId: fc.constantFrom('p', 'q', 'r'),
      origin: fc.constantFrom('a', 'b', 'c', 'd'),
      size: fc.integer({ min: 1, max: 12 }),
    }),
    { minLength: 1, maxLength: 12 },
  );

  it('serves every entry exactly once', () => {
    fc.assert(
      fc.property(limits, lots, (limits, lots) => {
        const waiting = lots.flatMap(lot => entries(lot.size, lot.projectId, lot.origin));
        const turns = filled(limits, waiting);
        const served: Entry[] = [];
        while (turns.waiting > 0) {
          const batch = drain(turns);
          expect(batch.length).toBeGreaterThan(0);
          for (const one of batch) turns.done(one);
          served.push(...batch);
        }
        expect(new Set(served)).toEqual(new Set(waiting));
        expect(served).toHaveLength(waiting.length);
      }),
    );
  });

  it('serves no project twice while another waits, one slot at a time', () => {
    fc.assert(
      fc.property(lots, lots => {
        const waiting = lots.flatMap(lot => entries(lot.size, lot.projectId, lot.origin));
        const turns = filled({ concurrency: 1, perTarget: 1 }, waiting);
        const order: Entry[] = [];
        for (let one = turns.next(); one !== undefined; one = turns.next()) {
          order.push(one);
          turns.done(one);
        }
        const unfair = order.filter((one, index) => {
          const isTwice = index > 0 && order[index - 1]!.projectId === one.projectId;
          return isTwice && order.slice(index).some(other => other.projectId !== one.projectId);
        });
        expect(order).toHaveLength(waiting.length);
        expect(unfair).toEqual([]);
      }),
    );
  });

  it('keeps no target waiting for longer than one round of the others', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 }), (projects, targets) => {
        const turns = new Turns<Entry>({ concurrency: 1, perTarget: 1 });
        for (let project = 0; project < projects; project += 1) {
          for (let target = 0; target < targets; target += 1) {
            for (const one of entries(50, `p${project}`, `t${project}.${target}`)) turns.push(one);
          }
        }
        const late = entry('p0', 'late');
        turns.push(late);
        let turn = 0;
        for (let one = turns.next(); one !== late; one = turns.next()) {
          turns.done(one!);
          turn += 1;
        }
        expect(turn).toBeLessThanOrEqual(projects * (targets + 1));
      }),
    );
  });
});
