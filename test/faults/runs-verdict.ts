/**
 * Whether the promise to those who call asynchronously was kept: what must have become of every run that was
 * accepted, as the API tells it, as the app and the receiver have seen it, and as it is on record in the end.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { REQUEST_SUFFIX, type RunRecord } from '../../src/store/runs.ts';
import type { Body, Store } from '../../src/store/store.ts';
import type { WholeAnswer } from '../support/load.ts';
import { PROJECT } from '../support/service.ts';
import type { MoodyReceiver } from './moody-receiver.ts';
import type { AcceptedRun } from './run-callers.ts';
import type { Done, RunsApp } from './runs-app.ts';
import { expectLawful, expectSettled, type Lost } from './verdict.ts';

/** As often as a run may be started, and so reach its app. */
const MAX_STARTS = 2;
const FINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'cancelled']);
const AT_ONCE = 20;

/** A run as the API tells it. */
export interface SeenRun {
  readonly run_id: string;
  readonly state: string;
  readonly starts: number;
  readonly ended_at?: string;
  readonly status_code?: number;
  readonly result?: Done;
  readonly error?: { readonly type: string };
  readonly delivery?: object;
}

/** Ends of runs, by run id, as they were seen first. */
export type Ends = Map<string, SeenRun>;

export interface Asking {
  readonly base: string;
  readonly token: string;
}

/** Asks for those whose end has not been seen, and waits for it as long as is said. */
export async function lookAt(
  { base, token }: Asking,
  runs: readonly AcceptedRun[],
  ends: Ends,
  wait = '0s',
): Promise<void> {
  const waiting = runs.filter(({ runId }) => !ends.has(runId));
  await eachOf(waiting, async ({ runId }) => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${base}/v4/${PROJECT}/_runs/${runId}?wait=${wait}`, { headers });
    const text = await answer.text();
    expect({ status: answer.status, text }).toMatchObject({ status: 200 });
    const run = JSON.parse(text) as SeenRun;
    if (FINAL.has(run.state)) ends.set(runId, run);
  });
}

/** Throws unless each of them has ended, once, in a way that is permitted. */
export function expectEnded(runs: readonly AcceptedRun[], ends: Ends, { arrivals }: RunsApp): void {
  const faults = runs.flatMap(run => {
    const end = ends.get(run.runId);
    const faultsOfRun =
      end === undefined ? ['has not ended'] : faultsOf(run, end, arrivals.get(run.runId) ?? 0);
    return faultsOfRun.map(fault => ({ run, end, fault }));
  });
  expect(faults).toEqual([]);
  // Also those whose 202 was lost on its way.
  expect([...arrivals].filter(([, count]) => count > MAX_STARTS)).toEqual([]);
}

function faultsOf(run: AcceptedRun, end: SeenRun, arrivals: number): string[] {
  const faults: string[] = [];
  const must = (rule: string, kept: boolean): void => void (kept || faults.push(rule));
  must('is counted', end.starts >= arrivals && end.starts <= MAX_STARTS);
  must('tells of its delivery if it has one', (end.delivery !== undefined) === run.webhook);
  if (end.state === 'succeeded') {
    must('has reached its app', arrivals > 0);
    must('came whole', end.result?.call === run.call && end.result.received === run.bytes);
  } else {
    must('fails by interruption alone', end.state === 'failed' && end.error?.type === 'interrupted');
    must('is interrupted when its starts are used up', end.starts === MAX_STARTS);
  }
  return faults;
}

/** Throws unless what is on record is what was seen, with one delivery, lawfully sent, for each that asked for one. */
export async function expectOnRecord(
  store: Store,
  {
    runs,
    ends,
    receiver,
    lost,
  }: { runs: readonly AcceptedRun[]; ends: Ends; receiver: MoodyReceiver; lost: Lost },
): Promise<void> {
  const answers: WholeAnswer[] = [];
  await eachOf(runs, async ({ runId, webhook }) => {
    const record = await store.runs.find(PROJECT, runId);
    expect(brief(record)).toEqual(seen(ends.get(runId)!));
    if (webhook) answers.push(await answerOf(store, record!));
    else expect(await store.find(runId)).toBeUndefined();
  });
  expectLawful(answers, receiver.posts, lost);
  await expectSettled(store, answers);
}

const brief = (record: RunRecord | undefined) =>
  record && { state: record.state, starts: record.starts, ended: record.endedAt, status: record.statusCode };

const seen = ({ state, starts, ended_at, status_code }: SeenRun) => ({
  state,
  starts,
  ended: Date.parse(ended_at!),
  status: status_code,
});

/** What its receiver is to get: the very bytes that it has ended with. */
async function answerOf(store: Store, { runId, statusCode, endedAt }: RunRecord): Promise<WholeAnswer> {
  const bytes = await bytesOf((await store.runs.result(PROJECT, runId))!);
  const digest = createHash('sha256').update(bytes).digest('hex');
  return { runId, app: 'cortex', status: statusCode!, digest, at: endedAt! };
}

async function bytesOf(body: Body): Promise<Uint8Array> {
  if ('bytes' in body) return body.bytes;
  if ('file' in body) return readFile(body.file);
  const pieces: Uint8Array[] = [];
  for await (const piece of body.pieces()) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Throws where a file is left that belongs to nothing: requests are not needed any more, nor drafts. */
export async function expectNoOrphans(store: Store, spool: string): Promise<void> {
  const files = await readdir(spool);
  const orphans: string[] = [];
  await eachOf(files, async file => {
    if (file.endsWith(REQUEST_SUFFIX) || !(await isKnown(store, file))) orphans.push(file);
  });
  expect(orphans).toEqual([]);
}

async function isKnown(store: Store, runId: string): Promise<boolean> {
  try {
    return (await store.runs.result(PROJECT, runId)) !== undefined || (await store.find(runId)) !== undefined;
  } catch {
    return false; // the name of a draft is no run id
  }
}

/** A few at once. */
async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const lane = async (): Promise<void> => {
    for (const item of left) await act(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}
