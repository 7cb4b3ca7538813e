/**
 * The ledger of the store that nodes share. This file turns the interface's calls into reads and transactions,
 * carried through faults of the environment, and tells those who follow of what is done.
 */
import type { Clock } from '../../clock.ts';
import type { Ledger } from '../ledger.ts';
import { isRunId } from '../run-id.ts';
import type { Keyring } from '../seal.ts';
import { pruneActionKeys } from './action-keys.ts';
import type { Bodies } from './bodies.ts';
import { WRITING } from './by-index.ts';
import { cancelDelivery } from './cancellation.ts';
import type { Database, DatabasePool } from './connection.ts';
import type { Following } from './following.ts';
import type { Gate } from './gate.ts';
import { addJob, claimJob, findJob, pruneJobs, stepping } from './jobs.ts';
import { countPendingOf, listDeliveries, listRunIds, readSummaries } from './ledger-reading.ts';
import type { Persistence } from './persistence.ts';
import { redelivering } from './redelivery.ts';
import type { Times } from './times.ts';

export interface LedgerOptions {
  readonly database: DatabasePool;
  readonly persistence: Persistence;
  readonly gate: Gate;
  readonly bodies: Bodies;
  readonly keyring: Keyring;
  readonly times: Times;
  readonly clock: Clock;
  /** This node's number. */
  readonly owner: () => number;
  readonly following: Pick<Following, 'follow' | 'changed'>;
  /** Deliveries or jobs were left without an owner. */
  readonly onUnowned: () => void;
}

export function createLedger(options: LedgerOptions): Ledger {
  const { database, persistence, gate, bodies, keyring, times, clock, owner, following, onUnowned } = options;
  let lastClaim = 0;

  const read = <T>(work: () => Promise<T>) => gate.run(() => persistence.persist(work));
  const write = <T>(work: (writer: Database) => Promise<T>) =>
    persistence.persist(() => database.transaction(WRITING, work));

  /** Of an order to go on from what never was a run, nothing is left. */
  const isBeyond = (before: string | undefined) => before !== undefined && !isRunId(before);

  function restarted(runIds: readonly string[]): void {
    if (runIds.length === 0) return;
    onUnowned();
    for (const runId of runIds) following.changed(runId);
  }

  return {
    list: (filter, page) =>
      read(async () =>
        isBeyond(page.before) ? { deliveries: [] } : listDeliveries(database, filter, page, clock.now()),
      ),
    runIds: (filter, page) =>
      read(async () =>
        isBeyond(page.before) ? { runIds: [] } : listRunIds(database, filter, page, clock.now()),
      ),
    summaries: runIds => read(() => readSummaries(database, runIds.filter(isRunId))),
    content: runId => gate.run(async () => (isRunId(runId) ? bodies.read(runId) : undefined)),
    pendingOf: projectId => read(() => countPendingOf(database, projectId)),

    redeliver: redelivery =>
      gate.run(async () => {
        if (!isRunId(redelivery.runId)) return { outcome: 'not_found' };
        const at = times.toDatabase(redelivery.at);
        const redelivered = await write(redelivering({ ...redelivery, at }, keyring));
        if (redelivered.outcome === 'redelivered') restarted([redelivery.runId]);
        return redelivered;
      }),

    cancel: (runId, at, projectId) =>
      gate.run(async () => {
        if (!isRunId(runId)) return 'not_found';
        const cancellation = { runId, projectId, at: times.toDatabase(at) };
        const cancelled = await persistence.persist(replay => cancelDelivery(database, cancellation, replay));
        if (cancelled === 'cancelled') following.changed(runId);
        return cancelled;
      }),

    addJob: job =>
      gate.run(async () => {
        const added = await write(writer =>
          addJob(writer, { ...job, createdAt: times.toDatabase(job.createdAt) }),
        );
        if (added !== 'conflict') onUnowned();
        return added;
      }),
    findJob: (id, projectId) => read(() => findJob(database, id, projectId)),
    claimJob: () =>
      gate.run(() => {
        const claim = (lastClaim += 1);
        return persistence.persist(replay => claimJob(database, owner(), claim, replay));
      }),
    stepJob: (ref, step) =>
      gate.run(async () => {
        const stepped = await write(stepping(ref, { ...step, at: times.toDatabase(step.at) }));
        restarted(stepped?.rounds.map(({ runId }) => runId) ?? []);
        return stepped?.job;
      }),

    follow: listener => following.follow(listener),
  };
}

/** Deletes jobs that ended before `before`, by the database's clock, and up to `limit` keys of no use any more. */
export async function pruneActions(database: Database, before: number, limit: number): Promise<void> {
  await pruneJobs(database, before);
  await pruneActionKeys(database, limit);
}
