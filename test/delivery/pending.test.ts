import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Pending } from '../../src/delivery/pending.ts';
import { silentLogger } from '../../src/log.ts';
import { ManualClock } from '../support/clock.ts';

/** A store that does what it is given in order, and whose readings are answered when the test says so. */
function rig() {
  const clock = new ManualClock();
  const readings: Array<{ answer(): void; fail(): void }> = [];
  let stored = 0;
  const backlog = () => {
    const { promise, resolve, reject } = Promise.withResolvers<{ pending: Map<string, number> }>();
    const pending = new Map(stored === 0 ? [] : [['p', stored]]);
    readings.push({ answer: () => resolve({ pending }), fail: () => reject(new Error('unreadable')) });
    return promise;
  };
  const pending = new Pending({ store: { backlog }, clock, log: silentLogger });
  return {
    clock,
    pending,
    readings,
    write: (by: 1 | -1) => {
      stored += by;
    },
    stored: () => stored,
  };
}

const STEPS = ['insert', 'refused insert', 'settle', 'answer', 'read', 'answer reading'] as const;
type Step = (typeof STEPS)[number];

describe('what is pending', () => {
  it('is counted by project, and forgotten at none', () => {
    const { pending } = rig();
    pending.change('p', 1, pending.mark);
    pending.change('q', 1, pending.mark);
    pending.change('p', 1, pending.mark);
    pending.change('q', -1, pending.mark);
    expect(['p', 'q', 'r'].map(project => pending.of(project))).toEqual([2, 0, 0]);
  });

  it('is exact whatever is answered when, as long as the store keeps the order of what it is given', async () => {
    const steps = fc.array(fc.tuple(fc.constantFrom(...STEPS), fc.nat()), { maxLength: 80 });
    await fc.assert(
      fc.asyncProperty(steps, fc.constantFrom('answer' as const, 'fail' as const), async (taken, last) => {
        const { pending, readings, write, stored } = rig();
        const unanswered: Array<() => void> = [];
        let reading: Promise<void> | undefined;
        /** The store's answer, on which the delivery is no longer pending. */
        const gone = (mark: number) => unanswered.push(() => pending.change('p', -1, mark));
        const take: Record<Step, (which: number) => unknown> = {
          insert() {
            pending.change('p', 1, pending.mark);
            write(1);
          },
          'refused insert'() {
            pending.change('p', 1, pending.mark);
            gone(pending.mark);
          },
          settle() {
            if (stored() === 0) return;
            write(-1);
            gone(pending.mark);
          },
          answer: which => unanswered.splice(which % Math.max(1, unanswered.length), 1)[0]?.(),
          read() {
            reading ??= pending.read().catch(() => {});
          },
          async 'answer reading'() {
            readings.shift()?.answer();
            await reading;
            reading = undefined;
          },
        };
        for (const [step, which] of taken) await take[step](which);
        readings.shift()?.[last]();
        await reading;
        for (const answer of unanswered) answer();
        expect(pending.of('p')).toBe(stored());
      }),
    );
  });

  it('is read anew every 10 s, one reading at a time, until it is stopped', async () => {
    const { clock, pending, readings, write } = rig();
    pending.keepFresh();
    write(1);
    clock.advance(9_999);
    expect(readings).toHaveLength(0);
    clock.advance(1);
    clock.advance(60_000);
    expect(readings).toHaveLength(1);
    readings.pop()!.fail();
    await expect.poll(() => clock.waiting).toBe(1);
    clock.advance(10_000);
    readings.pop()!.answer();
    await expect.poll(() => pending.of('p')).toBe(1);
    await expect.poll(() => clock.waiting).toBe(1);
    pending.stop();
    expect(clock.waiting).toBe(0);
  });

  it('is read no more when it is stopped during a reading', async () => {
    const { clock, pending, readings } = rig();
    pending.keepFresh();
    clock.advance(10_000);
    pending.stop();
    readings.pop()!.answer();
    await new Promise(setImmediate);
    expect(clock.waiting).toBe(0);
  });
});
