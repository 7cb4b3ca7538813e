/** What many spans have in common is written once, as long as there is not too much of it. */
import { expect, it } from 'vitest';
import { createShared } from '../../src/trace/shared.ts';

function open() {
  const written: string[] = [];
  const shared = createShared((writer, a: string, b: string | undefined) => {
    written.push(`${a} ${b}`);
    writer.text(1, a);
  });
  return { shared, written };
}

it('is made once for each two values', () => {
  const { shared, written } = open();
  const first = shared('POST', 'a');
  for (const [a, b] of [
    ['POST', 'b'],
    ['GET', 'a'],
    ['POST', undefined],
    ['POST', 'a'],
  ] as const) {
    shared(a, b);
  }
  expect(shared('POST', 'a')).toBe(first);
  expect(written).toEqual(['POST a', 'POST b', 'GET a', 'POST undefined']);
});

it('is made anew where there is much of it, or where it is long', () => {
  const { shared, written } = open();
  for (let i = 0; i <= 1_000; i++) shared('POST', String(i));
  shared('POST', '0');
  expect(written).toHaveLength(1_002);
  const long = 'x'.repeat(600);
  shared(long, 'a');
  shared(long, 'a');
  expect(written).toHaveLength(1_004);
});
