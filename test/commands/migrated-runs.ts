/** A store with every kind of run in it, and all that a store tells of its runs, in a form to compare. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import {
  type ClaimedRun,
  type NewRun,
  REQUEST_SUFFIX,
  type RunEnd,
  type RunFilter,
  type RunOutcome,
  type RunState,
} from '../../src/store/runs.ts';
import type { Body, DeliveryRef, NewDelivery, Store } from '../../src/store/store.ts';
import { attempt, newDelivery, newRun, readBody, spooledBody } from '../store/samples.ts';

const DAY = 24 * 3_600_000;
const LARGE = Buffer.alloc(2_500_000, 'ab');
const WEBHOOK = { target: 'https://receiver.example/hook?a=1', confidential: {} };
const STATES: readonly RunState[] = ['queued', 'running', 'succeeded', 'failed', 'cancelled'];

export const RESULT: RunOutcome = { result: { bytes: Buffer.from('{"result":1}') } };

export function ending(overrides: Partial<RunEnd> = {}): RunEnd {
  return { state: 'succeeded', endedAt: Date.now(), statusCode: 200, ...overrides };
}

/** All that wait, of the apps that these are of. */
export function claimAll(store: Store, runs: readonly NewRun[]): Promise<ClaimedRun[]> {
  const apps = new Map(runs.map(({ projectId, app }) => [`${projectId}/${app}`, { projectId, app }]));
  return store.runs.claim([...apps.values()].map(app => ({ ...app, limit: 10_000, each: false })));
}

/** Inserts a run and begins it. */
export async function begun(store: Store, run: NewRun, startedAt = Date.now()): Promise<ClaimedRun> {
  await store.runs.insert(run);
  const claimed = (await claimAll(store, [run])).find(({ runId }) => runId === run.runId)!;
  await store.runs.begin(claimed.ref, startedAt);
  return claimed;
}

/** Inserts a run and ends it; tells the delivery that was made. */
export async function ended(
  store: Store,
  run: NewRun,
  end = ending(),
  outcome = RESULT,
): Promise<DeliveryRef> {
  const { ref } = await begun(store, run);
  return (await store.runs.end(ref, end, outcome))!.delivery!;
}

function delivering(run: NewRun, overrides: Partial<NewDelivery> = {}): { delivery: NewDelivery } {
  const { runId, projectId, app } = run;
  return { delivery: newDelivery({ runId, projectId, app, ...overrides }) };
}

async function settle(store: Store, ref: DeliveryRef): Promise<void> {
  await store.beginAttempt(ref, Date.now());
  await store.endAttempt(ref, attempt(1, { status: 200 }), { state: 'delivered' });
}

export interface Filled {
  readonly runs: readonly NewRun[];
  /** Those of `afterword migrate`. */
  readonly counts: Readonly<Record<string, number>>;
}

type Make = (overrides?: Partial<NewRun>) => NewRun;

/** Each of a millisecond of its own, so that stores agree about their order. */
function runMaker(): Make {
  let createdAt = Date.now() - 60_000;
  return overrides => newRun({ createdAt: (createdAt += 1), ...overrides });
}

const idempotency = (key: string) => ({ key, fingerprint: Buffer.from(`print of ${key}`) });

/** As a node that dies in the end, with runs in its hands. */
export async function fillWithRuns(store: Store, data: string): Promise<Filled> {
  const make = runMaker();
  const spoolDir = join(data, 'spool');
  const endedRuns = [
    ...(await fillForgotten(store, make)),
    ...(await fillKept(store, make, spoolDir)),
    ...(await fillDelivered(store, make, spoolDir)),
  ];
  const cutOff = [
    make(),
    make({ app: 'other', body: { bytes: Buffer.from('{}') } }),
    make({ webhook: WEBHOOK }),
  ];
  for (const run of cutOff) await begun(store, run);
  await store.runs.cancel('p-demo', cutOff[2]!.runId);
  const waiting = await fillWaiting(store, make, spoolDir);
  return {
    runs: [...endedRuns.slice(1), ...cutOff, ...waiting], // the first of them is deleted
    counts: {
      pending: 2,
      settled: 1,
      waiting_runs: cutOff.length + waiting.length,
      ended_runs: endedRuns.length - 1,
      idempotency_keys: 3,
    },
  };
}

/** A run that is deleted, of which only its key is left; and one whose delivery is. */
async function fillForgotten(store: Store, make: Make): Promise<NewRun[]> {
  const deleted = make({ idempotency: idempotency('of a deleted run') });
  await ended(store, deleted, ending({ endedAt: Date.now() - DAY }));
  await store.runs.prune(Date.now() - DAY / 2, 10);
  const undelivered = make({ webhook: WEBHOOK });
  await settle(store, await ended(store, undelivered, ending(), delivering(undelivered)));
  await store.prune(Date.now() + 60_000, 10);
  return [deleted, undelivered];
}

async function fillKept(store: Store, make: Make, spoolDir: string): Promise<NewRun[]> {
  const [plain, empty, large, failed, cancelled] = [
    make({ idempotency: idempotency('of an ended run') }),
    make({ projectId: 'p-other' }),
    make(),
    make({ app: 'other' }),
    make(),
  ] as const;
  await ended(store, plain, ending({ endedAt: Date.now() - 1000.5 }));
  await ended(store, empty, ending(), { result: { bytes: new Uint8Array() } });
  await ended(store, large, ending({ statusCode: 201 }), {
    result: await spooledBody(spoolDir, large.runId, LARGE),
  });
  await ended(store, failed, ending({ state: 'failed', statusCode: 504, error: 'app_timeout' }));
  await store.runs.insert(cancelled);
  const { ref } = (await claimAll(store, [cancelled]))[0]!;
  await store.runs.end(ref, ending({ state: 'cancelled', statusCode: 499, error: 'cancelled' }), RESULT);
  return [plain, empty, large, failed, cancelled];
}

async function fillDelivered(store: Store, make: Make, spoolDir: string): Promise<NewRun[]> {
  const [pending, large, settled] = [make, make, make].map(each => each({ webhook: WEBHOOK })) as [
    NewRun,
    NewRun,
    NewRun,
  ];
  await ended(
    store,
    pending,
    ending({ state: 'failed', statusCode: 500 }),
    delivering(pending, { owned: false }),
  );
  const body = await spooledBody(spoolDir, large.runId, LARGE);
  await ended(store, large, ending(), delivering(large, { body }));
  await settle(store, await ended(store, settled, ending(), delivering(settled)));
  return [pending, large, settled];
}

async function fillWaiting(store: Store, make: Make, spoolDir: string): Promise<NewRun[]> {
  const confidential = { secret: Buffer.from('a secret'), authorization: 'Basic abc' };
  const large = make({ idempotency: idempotency('of a waiting run') });
  const file = `${large.runId}${REQUEST_SUFFIX}`;
  const waiting = [
    newRun({ createdAt: Date.now() - 5 * DAY }),
    make({ query: '', body: { bytes: new Uint8Array() }, headers: [] }),
    make({
      method: 'PATCH',
      path: '/a%2Fb/ü',
      query: 'x=1&&y=%20',
      headers: ['x-a', '1', 'X-A', 'ÿ', 'authorization', 'Bearer t'],
      body: { bytes: Buffer.from('{"big":12345678901234567890}') },
      webhook: { ...WEBHOOK, confidential },
    }),
    { ...large, body: await spooledBody(spoolDir, file, LARGE) },
    make({ projectId: 'p-other', app: 'other', webhook: WEBHOOK }),
    make(),
  ];
  for (const run of waiting) await store.runs.insert(run);
  await store.runs.cancel('p-demo', waiting.at(-1)!.runId);
  return waiting;
}

async function digestOf(body: Body | undefined): Promise<string | undefined> {
  const bytes = await readBody(body);
  return bytes && `${bytes.length} bytes ${createHash('sha256').update(bytes).digest('hex')}`;
}

/** All that a store tells of these without touching them. */
export async function toldOf(store: Store, runs: readonly NewRun[]): Promise<unknown> {
  const each = async ({ projectId, runId }: NewRun) => ({
    run: await store.runs.find(projectId, runId),
    result: await digestOf(await store.runs.result(projectId, runId)),
  });
  const filters: RunFilter[] = [
    {},
    { projectId: 'p-demo' },
    { projectId: 'p-demo', app: 'other' },
    ...STATES.map(state => ({ state })),
  ];
  const list = async (filter: RunFilter) => ({ filter, runs: await store.runs.list(filter, { limit: 100 }) });
  return {
    each: await Promise.all(runs.map(each)),
    lists: await Promise.all(filters.map(list)),
    page: await store.runs.list({}, { limit: 3, before: runs[5]!.runId }),
    ended: await store.runs.ended(runs.map(({ runId }) => runId)),
    pending: (await store.backlog()).pending,
  };
}

/** Takes all that wait, with what they came with. */
export async function takenFrom(store: Store, runs: readonly NewRun[]): Promise<unknown> {
  const taken = (await claimAll(store, runs)).toSorted((a, b) => (a.runId < b.runId ? -1 : 1));
  return Promise.all(
    taken.map(async ({ ref, webhook, ...rest }) => ({
      ...rest,
      ...(webhook && { target: webhook.target, authorization: webhook.confidential.authorization }),
      secret: webhook?.confidential.secret && Buffer.from(webhook.confidential.secret).toString('hex'),
      body: await digestOf(await store.runs.body(ref)),
    })),
  );
}

/** What becomes of calls that come again with the keys of these, and of others with the same keys. */
export function repeatedIn(store: Store): Promise<unknown> {
  const keys = ['of a deleted run', 'of an ended run', 'of a waiting run'].map(idempotency);
  const others = keys.map(key => ({ ...key, fingerprint: Buffer.from('another') }));
  return Promise.all([...keys, ...others].map(key => store.runs.insert(newRun({ idempotency: key }))));
}
