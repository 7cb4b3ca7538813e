/**
 * The steps of a delivery in their order, and what the time of an attempt was spent on.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Attempt, DeliveryDetail, Timings } from '../../dashboard/src/api/shapes.ts';
import {
  type AttemptStep,
  countdown,
  foundConnectionOpen,
  phasesOf,
  phaseText,
  stepsOf,
  timeIn,
} from '../../dashboard/src/timeline.ts';
import { outcomeOf } from '../../dashboard/src/timeline-outcome.ts';
import { ATTEMPT_ERRORS, judgeOutcome } from '../../src/delivery/outcome.ts';
import { explain } from '../../src/delivery/explanations.ts';
import { afterAttempt } from '../../src/delivery/policy.ts';

/** When the call of RUN_ID came in. */
const T = 1_800_000_000_000;
const RUN_ID = '01a3185c-5000-7c44-9d0e-6a4f0c1b2d3e';
const iso = (ms: number): string => new Date(T + ms).toISOString();

function attempt(overrides: Partial<Attempt> = {}): Attempt {
  const timings = { queue: 0, connect: 1, first_byte: 2, total: 10 };
  return { round: 1, number: 1, trigger: 'automatic', started_at: iso(20), timings, ...overrides };
}

function delivery(overrides: Partial<DeliveryDetail> = {}): DeliveryDetail {
  return {
    run_id: RUN_ID,
    project_id: 'p',
    app: 'hello',
    target: 'http://receiver.example/hook',
    status_code: 200,
    state: 'delivered',
    round: 1,
    attempt_count: 1,
    created_at: iso(12),
    settled_at: iso(30),
    attempts: [attempt({ status: 200 })],
    ...overrides,
  };
}

function attemptSteps(attempts: Attempt[]): AttemptStep[] {
  return stepsOf(delivery({ attempts }), 1).filter((step): step is AttemptStep => step.kind === 'attempt');
}

describe('the steps of a delivery', () => {
  it('are the call, its function, the capture, the attempt and the end', () => {
    expect(stepsOf(delivery(), 11.5)).toEqual([
      { kind: 'called', at: T },
      { kind: 'ran', at: T + 12, ms: 11.5, status: 200 },
      { kind: 'captured', at: T + 12 },
      expect.objectContaining({ kind: 'attempt', at: T + 20, pauseMs: undefined, opensRound: false }),
      { kind: 'settled', at: T + 30, state: 'delivered', reason: undefined },
    ]);
  });

  it('of an asynchronous call tell when its run was begun', () => {
    const run = {
      state: 'succeeded',
      created_at: iso(1),
      started_at: iso(5),
      ended_at: iso(12),
      starts: 2,
    } as const;
    const steps = stepsOf(delivery({ run }), undefined);
    expect(steps.slice(1, 3)).toEqual([
      { kind: 'begun', at: T + 5, waitedMs: 4, starts: 2 },
      { kind: 'ran', at: T + 12, ms: 7, status: 200 },
    ]);
  });

  it('of a run that was never begun tell no time of it', () => {
    const run = { state: 'cancelled', created_at: iso(1), ended_at: iso(12), starts: 0 } as const;
    expect(stepsOf(delivery({ run }), 0)[1]).toEqual({ kind: 'ran', at: T + 12, ms: undefined, status: 200 });
  });

  it('end with the next attempt while it is pending', () => {
    const { settled_at: _, ...pending } = delivery({ state: 'pending', next_attempt_at: iso(900) });
    expect(stepsOf(pending, 1).at(-1)).toEqual({ kind: 'next', at: T + 900 });
  });

  it('tell the pauses within a round, and where another begins', () => {
    const timings: Timings = { queue: 5, total: 10 };
    const attempts = [
      attempt({ started_at: iso(100), timings }),
      attempt({ number: 2, started_at: iso(1_115), timings }),
      attempt({ round: 2, trigger: 'manual', started_at: iso(9_000), timings: { queue: 0, total: 0 } }),
      attempt({ round: 2, number: 2, trigger: 'manual', started_at: iso(9_500), timings }), // after a crash
    ];
    expect(attemptSteps(attempts).map(({ pauseMs, opensRound }) => [pauseMs, opensRound])).toEqual([
      [undefined, true],
      [1_000, false],
      [undefined, true],
      [undefined, false],
    ]);
  });

  it('tell which attempts came to the same as the next of their round', () => {
    const attempts = [
      attempt({ status: 404 }),
      attempt({ number: 2, status: 404 }),
      attempt({ number: 3, error: { code: 'timeout', ...explain('timeout') } }),
      attempt({ round: 2, error: { code: 'timeout', ...explain('timeout') } }),
    ];
    expect(attemptSteps(attempts).map(({ repeated }) => repeated)).toEqual([true, false, false, false]);
  });
});

it('the time of a call is in its run id', () => {
  expect(timeIn(RUN_ID)).toBe(T);
  expect(timeIn('nonsense')).toBeUndefined();
});

describe('the time of an attempt', () => {
  it.each<[Timings, [string, number][]]>([
    [
      { queue: 1, dns: 2, connect: 3, tls: 4, first_byte: 5, total: 20 },
      [
        ['queue', 1],
        ['dns', 2],
        ['connect', 3],
        ['tls', 4],
        ['first_byte', 5],
        ['rest', 6],
      ],
    ],
    [
      { queue: 0, first_byte: 2, total: 3 },
      [
        ['queue', 0],
        ['first_byte', 2],
        ['rest', 1],
      ],
    ],
    [
      { queue: 0, total: 15_000 },
      [
        ['queue', 0],
        ['rest', 15_000],
      ],
    ],
    [{ queue: 0, total: 0 }, []], // cut off by a crash: nobody knows
  ])('%j', (timings, parts) => {
    expect(phasesOf(timings).map(({ name, ms }) => [name, ms])).toEqual(parts);
  });

  it('is covered by its parts, none of them below nothing', () => {
    const ms = fc.double({ min: 0, max: 20_000, noNaN: true });
    const some = fc.option(ms, { nil: undefined });
    fc.assert(
      fc.property(
        ms,
        some,
        some,
        some,
        some,
        fc.double({ min: 0.001, max: 20_000, noNaN: true }),
        (...given) => {
          const [queue, dns, connect, tls, first_byte, total] = given;
          const phases = phasesOf({ queue, dns, connect, tls, first_byte, total });
          expect(phases.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
          expect(Math.min(...phases.map(({ share }) => share))).toBeGreaterThanOrEqual(0);
        },
      ),
    );
  });

  it('is not said to be spent on reading where nothing was answered', () => {
    expect(phaseText('rest', { queue: 0, total: 9 }).label).toBe('Without answer');
    expect(phaseText('rest', { queue: 0, first_byte: 1, total: 9 }).label).toBe('Rest');
  });

  it('has no part for connecting where that was done before', () => {
    expect(foundConnectionOpen({ queue: 0, first_byte: 1, total: 2 })).toBe(true);
    expect(foundConnectionOpen({ queue: 0, connect: 1, first_byte: 1, total: 2 })).toBe(false);
    expect(foundConnectionOpen({ queue: 0, total: 2 })).toBe(false);
  });
});

it.each([
  [2_400, 'in 3 s'],
  [1, 'in 1 s'],
  [0, undefined],
  [-5_000, undefined],
])('an attempt that is due %d ms from now is %s', (left, text) => expect(countdown(T + left, T)).toBe(text));

describe('what came of an attempt', () => {
  it.each([200, 204, 299])('%d is good, and needs no words', status => {
    expect(outcomeOf({ status })).toEqual({ tone: 'good', title: `${status}` });
  });

  it('is told as the service tells it where there was no answer', () => {
    for (const code of ATTEMPT_ERRORS) {
      const error = { code, ...explain(code) };
      expect(outcomeOf({ error })).toEqual({ tone: 'bad', title: code, ...explain(code) });
    }
  });

  it('is said to be tried again where the service does that', () => {
    for (let status = 300; status < 1000; status += 1) {
      const verdict = judgeOutcome({ status });
      const next = afterAttempt({ verdict, attempts: 1, now: 0, random: () => 0 });
      const { meaning, advice } = outcomeOf({ status });
      expect([status, /not tried again/.test(meaning!)]).toEqual([status, next.state === 'failed']);
      expect([status, /is tried again/.test(meaning!)]).toEqual([status, next.state === 'pending']);
      expect(advice).not.toBe('');
    }
  });
});
