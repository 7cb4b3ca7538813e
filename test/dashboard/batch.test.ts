/** Changes that are told together, however fast they come. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBatch } from '../../dashboard/src/api/batch.ts';

interface Item {
  readonly id: string;
  readonly turn: number;
}

function gather() {
  const told: (readonly Item[])[] = [];
  return { told, batch: createBatch<Item>({ key: item => item.id, tell: items => told.push(items) }) };
}

describe('a batch', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('tells the last word on each, four times a second', () => {
    const { told, batch } = gather();
    for (const [id, turn] of [
      ['a', 1],
      ['b', 1],
      ['a', 2],
    ] as const)
      batch.add({ id, turn });
    expect(told).toEqual([]);
    vi.advanceTimersByTime(250);
    batch.add({ id: 'c', turn: 1 });
    vi.advanceTimersByTime(249);
    expect(told).toEqual([
      [
        { id: 'a', turn: 2 },
        { id: 'b', turn: 1 },
      ],
    ]);
    vi.advanceTimersByTime(1);
    expect(told[1]).toEqual([{ id: 'c', turn: 1 }]);
  });

  it('does not wait where it has many', () => {
    const { told, batch } = gather();
    for (let turn = 0; turn < 2_500; turn += 1) batch.add({ id: String(turn), turn });
    expect(told.map(items => items.length)).toEqual([1_000, 1_000]);
  });

  it('forgets what is dropped', () => {
    const { told, batch } = gather();
    batch.add({ id: 'a', turn: 1 });
    batch.drop();
    vi.advanceTimersByTime(1_000);
    expect([told, vi.getTimerCount()]).toEqual([[], 0]);
  });
});
