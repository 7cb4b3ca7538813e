import { expect, it } from 'vitest';
import { createRunIds } from '../../src/gateway/run-id.ts';

it('makes UUIDv7 ids, each after the one before, through many draws of random numbers', () => {
  const newRunId = createRunIds();
  const ids = Array.from({ length: 5_000 }, newRunId);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  expect(ids.filter(id => !uuid.test(id))).toEqual([]);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
});

it('ends an id in numbers that no other maker has', () => {
  const tails = Array.from({ length: 1_000 }, () => createRunIds()().slice(-8));
  // 32 random bits: among a thousand, more than a few equal ones mean that they are not random.
  expect(new Set(tails).size).toBeGreaterThan(990);
});
