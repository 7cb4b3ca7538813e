/** Ids: as long as they have to be, never nothing but zeros, and none twice. */
import { expect, it } from 'vitest';
import { createIds } from '../../src/trace/ids.ts';

it('makes ids that are valid and differ, also where the bytes that were drawn have run out', () => {
  const ids = createIds();
  const made = Array.from({ length: 1_000 }, () => [ids.traceId(), ids.spanId()] as const);
  for (const [traceId, spanId] of made) {
    expect(traceId).toMatch(/^[89a-f][\da-f]{31}$/);
    expect(spanId).toMatch(/^[89a-f][\da-f]{15}$/);
  }
  expect(new Set(made.flat()).size).toBe(2_000);
});
