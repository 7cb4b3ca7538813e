import { describe, expect, it } from 'vitest';
import { createMeter } from '../../src/commands/meter.ts';
import { Captured } from './run.ts';

function metered(stream: Captured, total: number, steps: readonly number[]): string {
  const meter = createMeter(stream, 'deliveries');
  meter.begin(total);
  for (const step of steps) meter.advance(step);
  return stream.text;
}

describe('a meter', () => {
  it('writes a line for each tenth where there is no terminal', () => {
    expect(metered(new Captured(), 1000, [50, 40, 10, 350, 9, 541])).toBe(
      [
        ' 10% 100 of 1000 deliveries\n',
        ' 45% 450 of 1000 deliveries\n',
        '100% 1000 of 1000 deliveries\n',
      ].join(''),
    );
  });

  it('draws a bar over itself on a terminal, and ends its line when it is full', () => {
    const drawn = metered(Object.assign(new Captured(), { isTTY: true }), 3, [1, 2]);
    expect(drawn).toBe(
      [
        `\r${'░'.repeat(30)}   0% 0 of 3 deliveries\u001b[K`,
        `\r${'█'.repeat(10)}${'░'.repeat(20)}  33% 1 of 3 deliveries\u001b[K`,
        `\r${'█'.repeat(30)} 100% 3 of 3 deliveries\u001b[K\n`,
      ].join(''),
    );
  });

  it.each([true, false])('says nothing where there is nothing to do (terminal: %s)', isTTY => {
    expect(metered(Object.assign(new Captured(), { isTTY }), 0, [])).toBe('');
  });
});
