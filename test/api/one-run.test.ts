/**
 * One run over HTTP: how it stands, what it ended with, waiting for its end, and cancelling it.
 */
import { uuidv7 } from 'uuidv7';
import { describe, expect, it } from 'vitest';
import { ProblemBody } from '../../src/api/problems.ts';
import { RunWithAnswer } from '../../src/api/run-contract.ts';
import type { RunWait } from '../../src/api/run-routes.ts';
import type { RunEnd, RunOutcome } from '../../src/store/runs.ts';
import { attempt, newDelivery } from '../store/samples.ts';
import { converse } from '../support/conversation.ts';
import { until } from '../support/waiting.ts';
import { envelopeOf, openApi, openRig, pathOf, PROJECT, T } from './rig.ts';

const CREATED = new Date(T).toISOString();
const STARTED = new Date(T + 1_000).toISOString();
const ENDED = new Date(T + 2_000).toISOString();
const TIMESTAMP = '"timestamp":"2027-01-15T08:00:02.000Z"';
const resultOf = (text: string): RunOutcome => ({ result: { bytes: Buffer.from(text) } });

describe('a run that has not ended', () => {
  it('is told with its times, and nothing that it does not have', async () => {
    const rig = await openRig();
    const run = await rig.insert();
    const known = { run_id: run.runId, project_id: PROJECT, app: 'hello', created_at: CREATED };
    const queued = await rig.get(pathOf(run.runId));
    expect(queued.status).toBe(200);
    expect(queued.headers.get('content-type')).toBe('application/json');
    expect(queued.headers.get('cache-control')).toBe('no-store');
    expect(queued.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(queued.json).toEqual({ ...known, state: 'queued', starts: 0 });
    await rig.begin(run);
    const running = (await rig.get(pathOf(run.runId))).json;
    expect(running).toEqual({ ...known, state: 'running', starts: 1, started_at: STARTED });
    await rig.store.runs.cancel(PROJECT, run.runId);
    const cancelling = (await rig.get(pathOf(run.runId))).json;
    expect(cancelling).toEqual({
      ...known,
      state: 'running',
      starts: 1,
      started_at: STARTED,
      cancelling: true,
    });
    for (const json of [queued.json, running, cancelling]) RunWithAnswer.strict().parse(json);
  });

  it('names its target without what may be secret in it', async () => {
    const rig = await openRig();
    const webhook = { target: 'https://receiver.example:8443/hook/a%20b?key=secret', confidential: {} };
    const run = await rig.insert({ webhook });
    const { json } = await rig.get(pathOf(run.runId));
    expect(json).toMatchObject({ delivery: { target: 'https://receiver.example:8443/hook/a%20b' } });
    expect((json as { delivery: object }).delivery).not.toHaveProperty('state');
  });

  it('has no answer that could have expired, where it was cancelled before it began', async () => {
    const rig = await openRig();
    const run = await rig.insert();
    await rig.store.runs.cancel(PROJECT, run.runId);
    const { json } = await rig.get(pathOf(run.runId));
    expect(json).toMatchObject({ state: 'cancelled', starts: 0 });
    expect(json).not.toHaveProperty('result_expired');
  });
});

describe('a run that has ended', () => {
  const answers: readonly (readonly [string, Partial<RunEnd>, string])[] = [
    [
      'a number that no double holds, and keys in their order',
      {},
      `"status_code":200,"result": { "b":12345678901234567890, "a":1.10, "b":[] },"run_time_ms":1.5,${TIMESTAMP}`,
    ],
    [
      'text in another encoding',
      { state: 'failed', statusCode: 404 },
      `"status_code":404,"content_type":"x/y","content_encoding":"zip","result_encoding":"base64","result":"AA==","run_time_ms":1,${TIMESTAMP}`,
    ],
    [
      'an error',
      { state: 'failed', statusCode: 504, error: 'app_timeout' },
      `"status_code":504,"error":{"type":"app_timeout","message":"é"},"run_time_ms":1,${TIMESTAMP}`,
    ],
    [
      'a result that was too large',
      {},
      `"status_code":200,"result_omitted":{"bytes":20,"limit":10},"run_time_ms":1,${TIMESTAMP}`,
    ],
  ];

  it.each(answers)('is followed by its answer as it is stored: %s', async (_, end, rest) => {
    const rig = await openRig();
    const run = await rig.insert();
    const envelope = envelopeOf(run, rest);
    await rig.end(run, resultOf(envelope), end);
    const { status, headers, text, json } = await rig.get(pathOf(run.runId));
    const state = end.state ?? 'succeeded';
    const opening = `{"state":"${state}","created_at":"${CREATED}","started_at":"${STARTED}","ended_at":"${ENDED}","starts":1,`;
    expect(status).toBe(200);
    expect(text).toBe(opening + envelope.slice(1));
    expect(headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cache-control')).toBe('no-store');
    RunWithAnswer.strict().parse(json);
  });

  it('tells how its delivery stands', async () => {
    const rig = await openRig();
    const target = 'https://receiver.example/hook?key=secret';
    const run = await rig.insert({ webhook: { target, confidential: {} } });
    const body = { bytes: Buffer.from(envelopeOf(run, '"status_code":200,"result":1')) };
    const begun = { owned: true, begunAt: Date.now() };
    const ref = await rig.begin(run);
    const ended = await rig.store.runs.end(
      ref,
      { state: 'succeeded', endedAt: T + 2_000, statusCode: 200 },
      { delivery: newDelivery({ runId: run.runId, projectId: PROJECT, target, body, ...begun }) },
    );
    const delivery = async () => {
      const { json } = await rig.get(pathOf(run.runId));
      return RunWithAnswer.strict().parse(json).delivery;
    };
    const shown = 'https://receiver.example/hook';
    expect(await delivery()).toEqual({ target: shown, state: 'pending', attempts: 0 });
    const rejected = { state: 'failed', reason: 'rejected' } as const;
    await rig.store.endAttempt(ended!.delivery!, attempt(1, { status: 400 }), rejected);
    expect(await delivery()).toEqual({ target: shown, ...rejected, attempts: 1 });
  });

  it('says that its answer is not there any more', async () => {
    const rig = await openRig({ result: async () => undefined });
    const run = await rig.insert();
    await rig.end(run, resultOf('{"a":1}'), { state: 'failed', statusCode: 502, error: 'interrupted' });
    const { json } = await rig.get(pathOf(run.runId));
    expect(RunWithAnswer.strict().parse(json)).toEqual({
      run_id: run.runId,
      project_id: PROJECT,
      app: 'hello',
      state: 'failed',
      created_at: CREATED,
      started_at: STARTED,
      ended_at: ENDED,
      starts: 1,
      status_code: 502,
      error: { type: 'interrupted' },
      result_expired: true,
    });
  });
});

describe('a run that is not there', () => {
  it.each([
    ['unknown', uuidv7()],
    ['no run id', 'x'],
    ['of another version', '0192f0c1-2d3e-4f40-8a5b-6c7d8e9f0a1b'],
    ['in upper case', uuidv7().toUpperCase()],
    ['escaped', '%7B%7D'],
  ])('%s', async (_, runId) => {
    const rig = await openApi();
    for (const [rest, init] of [
      ['', {}],
      ['?wait=5m', {}],
      ['/cancel', { method: 'POST' }],
    ] as const) {
      const { status, headers, json } = await rig.get(pathOf(runId, rest), init);
      expect([status, headers.get('content-type')]).toEqual([404, 'application/problem+json']);
      const problem = ProblemBody.strict().parse(json);
      expect(problem).toMatchObject({ code: 'run_not_found', run_id: headers.get('x-request-id') });
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  it('of another project', async () => {
    const rig = await openRig();
    const run = await rig.insert({ projectId: 'p-other' });
    expect((await rig.get(pathOf(run.runId))).json).toMatchObject({ code: 'run_not_found' });
    const cancelled = await rig.get(pathOf(run.runId, '/cancel'), { method: 'POST' });
    expect(cancelled.json).toMatchObject({ code: 'run_not_found' });
    expect(await rig.store.runs.find('p-other', run.runId)).toMatchObject({ state: 'queued' });
  });
});

describe('waiting for the end', () => {
  it('is over when the run ends', async () => {
    const rig = await openRig();
    const run = await rig.insert();
    const ref = await rig.begin(run);
    const waiting = rig.get(pathOf(run.runId, '?wait=5m'));
    await rig.finish(run, ref, resultOf(envelopeOf(run, '"status_code":200,"result":7')));
    expect((await waiting).json).toMatchObject({ state: 'succeeded', result: 7 });
  });

  it('is over when the time is up', async () => {
    const rig = await openRig();
    const run = await rig.insert();
    expect((await rig.get(pathOf(run.runId, '?wait=10ms'))).json).toMatchObject({ state: 'queued' });
  });

  it('is over when the service stops', async () => {
    const rig = await openRig();
    const run = await rig.insert();
    const waiting = rig.get(pathOf(run.runId, '?wait=5m'));
    rig.stop();
    expect((await waiting).json).toMatchObject({ state: 'queued' });
  });

  it('is over when the caller hangs up', async () => {
    const asked = Promise.withResolvers<RunWait>();
    const rig = await openApi({
      wait: (_project, _run, until) => {
        asked.resolve(until);
        return new Promise(resolve => until.signal.addEventListener('abort', () => resolve(undefined)));
      },
    });
    const caller = await converse(rig.port);
    caller.send(`GET ${pathOf(uuidv7(), '?wait=1m30s')} HTTP/1.1\r\nHost: test\r\n\r\n`);
    const { ms, signal } = await asked.promise;
    expect([ms, signal.aborted]).toEqual([90_000, false]);
    const aborted = new Promise(resolve => signal.addEventListener('abort', resolve));
    caller.close();
    await aborted;
  });

  it('leaves nothing that listens to the stop of the service', async () => {
    const given: AbortSignal[] = [];
    const rig = await openApi({
      async wait(_project, _run, { signal }) {
        given.push(signal);
        return undefined;
      },
    });
    await rig.get(pathOf(uuidv7(), '?wait=1s'));
    expect(given.map(signal => signal.aborted)).toEqual([true]);
  });

  it.each(['?wait=0s', '?wait=0ms', ''])('asks nobody to wait for no time (%s)', async query => {
    const rig = await openRig({ wait: () => Promise.reject(new Error('asked to wait')) });
    const run = await rig.insert();
    expect((await rig.get(pathOf(run.runId, query))).json).toMatchObject({ state: 'queued' });
  });

  it.each([
    ['?wait=5m1ms', 'wait must be a duration from 0s to 5m, such as 30s'],
    ['?wait=', 'wait must be a duration from 0s to 5m, such as 30s'],
    ['?wait=30', 'wait must be a duration from 0s to 5m, such as 30s'],
    ['?wait=1s&wait=2s', 'wait must be given once'],
    ['?Wait=1s', 'there is no parameter "Wait"'],
  ])('refuses %s', async (query, detail) => {
    const rig = await openApi();
    const { status, json } = await rig.get(pathOf(uuidv7(), query));
    expect(status).toBe(400);
    const problem = ProblemBody.strict().parse(json);
    expect(problem).toMatchObject({
      code: 'invalid_query',
      detail: `The query is not acceptable: ${detail}`,
    });
  });
});

describe('cancelling', () => {
  const post = { method: 'POST' };
  const cancelled = { state: 'cancelled', statusCode: 499, error: 'cancelled' } as const;

  it('marks the run and answers when it has ended', async () => {
    const rig = await openRig();
    const run = await rig.insert();
    const ref = await rig.begin(run);
    const answer = rig.get(pathOf(run.runId, '/cancel'), post);
    await until(async () => (await rig.store.runs.toCancel()).length > 0);
    expect(await rig.store.runs.toCancel()).toEqual([ref]);
    const envelope = envelopeOf(run, '"status_code":499,"error":{"type":"cancelled","message":"x"}');
    await rig.finish(run, ref, resultOf(envelope), cancelled);
    const { status, json } = await answer;
    expect(status).toBe(200);
    const told = RunWithAnswer.strict().parse(json);
    expect(told).toMatchObject({ state: 'cancelled', status_code: 499, error: { type: 'cancelled' } });
    const again = await rig.get(pathOf(run.runId, '/cancel'), post);
    expect([again.status, again.json]).toEqual([200, json]);
  });

  it('answers with a run that takes longer as it is', async () => {
    const waits: number[] = [];
    const rig = await openRig({
      async wait(projectId, runId, { ms }) {
        waits.push(ms);
        return rig.store.runs.find(projectId, runId);
      },
    });
    const run = await rig.insert();
    await rig.begin(run);
    const { status, json } = await rig.get(pathOf(run.runId, '/cancel'), post);
    expect([status, waits]).toEqual([200, [5_000]]);
    expect(json).toMatchObject({ state: 'running', cancelling: true });
  });

  it.each(['succeeded', 'failed'] as const)('refuses a run that has %s', async state => {
    const rig = await openRig();
    const run = await rig.insert();
    await rig.end(run, resultOf(envelopeOf(run, '"status_code":200')), { state });
    const { status, json } = await rig.get(pathOf(run.runId, '/cancel'), post);
    expect(status).toBe(409);
    expect(ProblemBody.strict().parse(json)).toMatchObject({ code: 'run_ended' });
  });
});
