/**
 * What the service answers, with a real store behind it, is taken apart into what is known and the body as it is
 * stored.
 */
import { expect, it } from 'vitest';
import { readDelivery, readRun } from '../../dashboard/src/views/delivery/stored.ts';
import { envelopeOf, openRig, pathOf } from '../api/rig.ts';

const FAILED = { state: 'failed', reason: 'exhausted' } as const;
/** A value that reading and writing would not keep. */
const RESULT = String.raw`{ "b": 12345678901234567890, "a":1.10, "a": "\u0041\/ \"run_time_ms\":7" }`;
const TAIL = '"run_time_ms":12.5,"timestamp":"2027-01-15T08:00:02.000Z"';

it('the body of a delivery is what is stored', async () => {
  const rig = await openRig();
  const body = `{"result":${RESULT},${TAIL}}`;
  const { runId } = await rig.attempted(FAILED, { status: 500 }, { body: { bytes: Buffer.from(body) } });
  const { text } = await rig.get(`/api/v1/deliveries/${runId}`);
  const read = readDelivery(text);
  expect(read.body).toBe(body);
  expect(read.ranMs).toBe(12.5);
  expect(read.detail).toMatchObject({
    run_id: runId,
    state: 'failed',
    request: { method: 'POST', body: null },
  });
});

it('a body that is gone is none', async () => {
  const known = { run_id: 'a', request: { method: 'POST', url: '', headers: {}, body: null } };
  expect(readDelivery(JSON.stringify(known))).toEqual({ detail: known, body: undefined, ranMs: undefined });
});

it('the result of a run is what is stored', async () => {
  const rig = await openRig();
  const run = await rig.insert();
  const envelope = envelopeOf(run, `"status_code":200,"result":${RESULT},${TAIL}`);
  await rig.end(run, { result: { bytes: Buffer.from(envelope) } });
  const read = readRun((await rig.get(pathOf(run.runId))).text);
  expect(read.result).toBe(RESULT);
  expect(read.run).toMatchObject({ run_id: run.runId, state: 'succeeded', run_time_ms: 12.5 });
});

it('a run that has not ended has no result', async () => {
  const rig = await openRig();
  const run = await rig.insert();
  const { result, run: known } = readRun((await rig.get(pathOf(run.runId))).text);
  expect(result).toBeUndefined();
  expect(known.state).toBe('queued');
});
