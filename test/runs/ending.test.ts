/** How runs end, by their answers, and which are ended without being begun. */
import { describe, expect, it } from 'vitest';
import { emptyEnvelope, envelopeOf, errorEnvelope } from '../../src/delivery/envelope.ts';
import { Problem, type ProblemCode } from '../../src/errors.ts';
import { endOf, refusalOf } from '../../src/runs/ending.ts';

const RUN = { runId: '0192aaaa-0000-7000-8000-000000000000', projectId: 'p', app: 'a' };
const FINISH = { runTimeMs: 1, completedAt: 5 };
const JSON_KINDS = ['json'] as const;

function answerWith(statusCode: number, bytes: Uint8Array, problem?: Problem) {
  return { statusCode, completedAt: 5, body: { bytes }, ...(problem && { problem }) };
}

describe('a run that has an answer', () => {
  it.each([
    [200, 'succeeded'],
    [204, 'succeeded'],
    [302, 'succeeded'],
    [399, 'succeeded'],
    [400, 'failed'],
    [404, 'failed'],
    [500, 'failed'],
  ])('with status %i has %s', (statusCode, state) => {
    const bytes = emptyEnvelope(RUN, { statusCode }, FINISH);
    expect(endOf(answerWith(statusCode, bytes))).toEqual({ state, endedAt: 5, statusCode });
  });

  it('has failed where an error takes the place of the result, whatever the status', () => {
    const bytes = errorEnvelope(RUN, { statusCode: 200 }, { type: 'ValueError', message: 'no' }, FINISH);
    expect(endOf(answerWith(200, bytes))).toMatchObject({ state: 'failed', error: 'ValueError' });
  });

  it('has succeeded where the result only looks like an error', () => {
    const result = Buffer.from('{"error":{"type":"x","message":"y"}}');
    const bytes = envelopeOf(RUN, { statusCode: 200 }, result, JSON_KINDS, FINISH);
    expect(endOf(answerWith(200, bytes))).toEqual({ state: 'succeeded', endedAt: 5, statusCode: 200 });
  });

  it('is judged by its status alone where the answer is a file, which no error ever is', () => {
    const answer = { statusCode: 200, completedAt: 5, body: { file: '/nowhere', size: 1 } };
    expect(endOf(answer).state).toBe('succeeded');
  });
});

it.each([
  ['cancelled', 'cancelled'],
  ['app_timeout', 'failed'],
  ['interrupted', 'failed'],
] as const)('a problem in place of the answer: %s is %s', (code, state) => {
  const problem = new Problem(code);
  const error = { type: code, message: 'why' };
  const bytes = errorEnvelope(RUN, { statusCode: problem.status }, error, FINISH);
  expect(endOf(answerWith(problem.status, bytes, problem))).toMatchObject({ state, error: code });
});

it.each<[unreadable: boolean, cancelled: boolean, starts: number, ProblemCode | undefined]>([
  [false, false, 0, undefined],
  [false, false, 1, undefined],
  [false, false, 2, 'interrupted'],
  [false, false, 3, 'interrupted'],
  [false, true, 0, 'cancelled'],
  [false, true, 2, 'cancelled'],
  [true, false, 0, 'secret_unreadable'],
  [true, true, 2, 'secret_unreadable'],
])('claimed, unreadable %s, cancelled %s, started %i times: refused for %s', (...given) => {
  const [unreadable, cancelled, starts, code] = given;
  expect(refusalOf({ unreadable, cancelled, starts }, 2)?.code).toBe(code);
});
