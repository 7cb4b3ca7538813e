/**
 * The bench of tracing with a handful of calls: that it runs, notices what is wrong, and ends cleanly. Its times
 * are nobody's business here.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Round } from '../bench/tracing/measure.ts';
import { spansIn } from '../bench/tracing/otlp-count.ts';
import { asText, tracingFigures } from '../bench/tracing/report.ts';
import { createSpanRequest } from '../src/trace/otlp.ts';

const RUN = join(import.meta.dirname, '..', 'bench', 'tracing', 'run.ts');
const bench = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [RUN, ...args]);

describe('a run', () => {
  it('has every answer, delivery and span checked, and gives all figures', async () => {
    const scale = ['--calls', '20', '--warm-up', '1', '--rounds', '1', '--pairs', '1', '--connections', '3'];
    const { stdout, stderr } = await bench(...scale, '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      calls: 20,
      figures: [
        { of: 'without webhook', rounds: 1, calls: 80, spans: 40 },
        { of: 'with webhook', rounds: 1, calls: 32, spans: 32 },
      ],
    });
    expect(stderr).toContain('pair 1 of 1: round 1');
  }, 60_000);

  it.each([
    ['--calls', '0'],
    ['--pairs', 'two'],
    ['--unknown', ''],
  ])('is refused with %s %s', async (...args) => {
    await expect(bench(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('Usage') });
  });
});

describe('the collector', () => {
  const nothing = new Uint8Array();
  const span = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    parent: undefined,
    linked: false,
    tracestate: undefined,
    startedAt: 1,
    endedAt: 2,
    beginning: nothing,
    ending: nothing,
    app: nothing,
    attributes: ['name', 'value'.repeat(100)],
  };

  it.each([0, 1, 300])('counts %i spans', count => {
    const request = createSpanRequest({ name: 'test', version: '0', resource: ['service.name', 'test'] });
    for (let i = 0; i < count; i++) request.add(span);
    expect(spansIn(request.bytes())).toBe(count);
  });

  it('refuses what is no request', () => {
    expect(() => spansIn(Buffer.from('{"resourceSpans":[]}'))).toThrow('has the key');
  });
});

describe('the figures', () => {
  it('compare within the round, and with what does not even count', () => {
    // The machine is twice as slow in the second round and ten times in the third.
    const rounds = [1, 2, 10].flatMap(slowness =>
      (['with webhook', 'without webhook'] as const).map(
        (of): Round => ({
          of,
          calls: 400,
          spans: 400,
          offMicros: 100 * slowness,
          onMicros: (of === 'with webhook' ? 103 : 104 + slowness) * slowness,
        }),
      ),
    );
    const figures = tracingFigures(rounds, { callMicros: 20, webhookMicros: 50 });
    expect(figures).toMatchObject([
      {
        of: 'without webhook',
        rounds: 3,
        calls: 1200,
        offMicros: 200,
        onMicros: 212,
        onToOff: 1.06,
        countingMicros: 20,
      },
      { of: 'with webhook', onToOff: 1.03, quartiles: [1.03, 1.03], countingMicros: 50 },
    ]);
    expect(figures[0]!.onToNotCounting).toBeCloseTo(212 / 180, 5);
    expect(asText(figures)).toMatch(
      /without webhook +200\.0 +212\.0 +1\.060 +1\.0[56]\d to 1\.\d{3} +20\.00/,
    );
  });
});
