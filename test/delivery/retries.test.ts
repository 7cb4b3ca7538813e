import { describe, expect, it } from 'vitest';
import { createRetries } from '../../src/delivery/retries.ts';
import { ManualClock } from '../support/clock.ts';

function started() {
  const clock = new ManualClock();
  const due: string[] = [];
  const retries = createRetries<string>({ clock, due: delivery => due.push(delivery) });
  return { clock, due, retries };
}

describe('retries', () => {
  it('are due at their time and not before, each for itself', () => {
    const { clock, due, retries } = started();
    retries.add('later', clock.now() + 4_000);
    retries.add('sooner', clock.now() + 1_000);
    clock.advance(999);
    expect(due).toEqual([]);
    clock.advance(1);
    expect(due).toEqual(['sooner']);
    clock.advance(3_000);
    expect(due).toEqual(['sooner', 'later']);
  });

  it.each([
    ['is past already', -60_000, 0],
    ['lies further off than any gap, the clock having been set back', 3_600_000, 5_000],
  ])('wait within bounds when the time %s', (_, offset, wait) => {
    const { clock, retries } = started();
    retries.add('one', clock.now() + offset);
    expect(clock.nextIn).toBe(wait);
  });

  it('are forgotten by clear', () => {
    const { clock, due, retries } = started();
    retries.add('one', clock.now() + 1_000);
    retries.clear();
    expect(clock.waiting).toBe(0);
    clock.advance(10_000);
    expect(due).toEqual([]);
  });
});
