/**
 * What an app prints, as lines of the service's log.
 */
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { logOutput } from '../../src/runtime/output.ts';
import { captureLog } from '../support/log.ts';

const RUN = '0198c0de-0000-7000-8000-000000000001';
const OTHER = '0198c0de-0000-7000-8000-000000000002';
const LONGEST = 16 * 1024;

/** What becomes of it, printed in these pieces: for each line its run and its text. */
async function printed(pieces: readonly (string | Uint8Array)[]): Promise<[run: unknown, text: string][]> {
  const stream = new PassThrough();
  const { log, lines } = captureLog();
  logOutput(stream, 'stderr', log);
  for (const piece of pieces) stream.write(piece);
  stream.end();
  await finished(stream);
  for (const line of lines) expect(line).toMatchObject({ level: 'info', stream: 'stderr' });
  return lines.map(({ run_id, msg }) => [run_id, msg]);
}

describe('the output of an app', () => {
  it.each([
    ['', []],
    ['one\n', [[undefined, 'one']]],
    [
      'one\ntwo\r\n\nno end',
      [
        [undefined, 'one'],
        [undefined, 'two'],
        [undefined, ''],
        [undefined, 'no end'],
      ],
    ],
    [
      `@${RUN}\tof a call\nof none\n@${OTHER}\t\n@${OTHER}\t@${RUN}\tonce\n`,
      [
        [RUN, 'of a call'],
        [undefined, 'of none'],
        [OTHER, ''],
        [OTHER, `@${RUN}\tonce`],
      ],
    ],
    ['@someone\thello\n', [[undefined, '@someone\thello']]],
    [`@${RUN} without a tab\n`, [[undefined, `@${RUN} without a tab`]]],
  ])('%j', async (text, lines) => {
    expect(await printed([text])).toEqual(lines);
  });

  it('is the same however it comes in', async () => {
    const bytes = Buffer.from(`Grüße 𝄞\n@${RUN}\tünd\r\nmehr €`);
    const whole = await printed([bytes]);
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(cuts, async unsorted => {
        const ends = [...unsorted.toSorted((a, b) => a - b), bytes.length];
        const pieces = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
        expect(await printed(pieces)).toEqual(whole);
      }),
      { numRuns: 50 },
    );
  });

  it('that is no UTF-8 is readable all the same', async () => {
    expect(await printed([Buffer.from([0x61, 0xff, 0x0a, 0xc3])])).toEqual([
      [undefined, 'a\ufffd'],
      [undefined, '\ufffd'],
    ]);
  });

  it.each([
    ['at once', 100_000],
    ['in pieces', 1_000],
  ])('has no line of any length, each part with its run: %s', async (_, size) => {
    const text = 'x'.repeat(40_000);
    const all = `@${RUN}\t${text}\nshort\n${text}`;
    const pieces = all.match(new RegExp(`[^]{1,${size}}`, 'g'))!;
    const lines = await printed(pieces);
    expect(Math.max(...lines.map(([, line]) => line.length))).toBeLessThanOrEqual(LONGEST);
    const at = lines.findIndex(([, line]) => line === 'short');
    const join = (part: typeof lines): string => part.map(([, line]) => line).join('');
    expect([join(lines.slice(0, at)), join(lines.slice(at + 1))].map(each => each === text)).toEqual([
      true,
      true,
    ]);
    expect(new Set(lines.slice(0, at).map(([run]) => run))).toEqual(new Set([RUN]));
    expect(new Set(lines.slice(at).map(([run]) => run))).toEqual(new Set([undefined]));
    expect(lines.length).toBeLessThan(12);
  });

  it('that has no end is not kept in memory', async () => {
    const stream = new PassThrough();
    const { log, lines } = captureLog();
    logOutput(stream, 'stdout', log);
    for (let piece = 0; piece < 100; piece += 1) {
      if (!stream.write(Buffer.alloc(10_000, 'y')))
        await new Promise(resolve => stream.once('drain', resolve));
    }
    const length = lines.reduce((sum, { msg }) => sum + msg.length, 0);
    expect(length).toBeGreaterThan(1_000_000 - 2 * LONGEST);
    stream.destroy();
  });
});
