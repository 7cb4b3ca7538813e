/**
 * The runs of the store that nodes share. This file turns the interface's calls into operations of the lanes
 * and statements; what is said of the store in store.ts holds for them as well.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { inChunks } from '../chunks.ts';
import { isRunId } from '../run-id.ts';
import {
  type ClaimedRun,
  type NewRun,
  REQUEST_SUFFIX,
  type RunEnd,
  type RunEnded,
  type RunInsertion,
  type RunOutcome,
  type RunRef,
  type RunStore,
} from '../runs.ts';
import type { Keyring } from '../seal.ts';
import type { NewBody } from '../store.ts';
import type { Bodies } from './bodies.ts';
import type { Database } from './connection.ts';
import type { Gate } from './gate.ts';
import { INSERTED, refOf } from './hold.ts';
import { insertionOf } from './insert.ts';
import { createLane } from './lane.ts';
import type { RunLanes } from './lanes.ts';
import { assertSpooled, inRow } from './parts.ts';
import type { Persistence } from './persistence.ts';
import { createRunBodies } from './run-bodies.ts';
import { type RunClaim, runClaimer } from './run-claim.ts';
import type { RunEnding } from './run-end.ts';
import { runHoldOf, type RunHold } from './run-hold.ts';
import { newRunRow } from './run-insert.ts';
import { pruneKeys, pruneRuns } from './run-prune.ts';
import { findRun, listRuns, liveRuns, oldestQueuedAt } from './run-reading.ts';
import { markedRuns, markRun } from './run-starts.ts';
import type { Times } from './times.ts';

const PRUNE_CHUNK = 500;

export interface RunsOptions {
  readonly database: Database;
  readonly persistence: Persistence;
  readonly gate: Gate;
  readonly lanes: RunLanes;
  readonly bodies: Bodies;
  readonly keyring: Keyring;
  readonly times: Times;
  /** This node's number. */
  readonly owner: () => number;
  readonly spoolDir: string;
  /** Runs are to be cancelled, on whatever node has them. */
  readonly onMarked: () => void;
  /** A delivery was made. */
  readonly onDelivery: (runId: string) => void;
}

export function createRuns(options: RunsOptions): RunStore {
  const {
    database,
    persistence,
    gate,
    lanes,
    bodies,
    keyring,
    times,
    owner,
    spoolDir,
    onMarked,
    onDelivery,
  } = options;
  const runBodies = createRunBodies({ database, persistence, bodies });
  const takeClaim = runClaimer({ database, keyring, owner, times });
  let lastClaim = 0;
  // One after the other: each counts what the one before has taken.
  const claims = createLane<{ claim: RunClaim; number: number }, ClaimedRun[]>({
    width: 1,
    length: 1,
    sizeOf: () => 0,
    persistence,
    run: async ([entry], replay) => [await takeClaim(entry!.claim, entry!.number, replay)],
  });

  const read = <T>(work: () => Promise<T>) => gate.run(() => persistence.persist(work));
  const claim = (wanted: RunClaim) =>
    gate.run(() => claims.submit({ claim: wanted, number: (lastClaim += 1) }));

  /** Through a reference of another owner nothing is done. */
  const held = <T>(ref: RunRef, lost: T, operation: (hold: RunHold) => Promise<T>) =>
    gate.run(async () => {
      const hold = runHoldOf(ref);
      return hold.owner === owner() ? operation(hold) : lost;
    });

  async function insert(run: NewRun): Promise<RunInsertion> {
    const { runId, body } = run;
    if (!isRunId(runId)) throw new RangeError(`not a usable run id: ${runId}`);
    if (body === undefined || !('file' in body)) return lanes.inserts.submit(newRunRow(run, keyring, times));
    assertSpooled(body, join(spoolDir, `${runId}${REQUEST_SUFFIX}`));
    await runBodies.writeRequest(runId, body.file, body.size);
    const insertion = await lanes.inserts.submit(newRunRow(run, keyring, times));
    if (insertion.outcome !== 'inserted') await runBodies.removeRequest(runId);
    await rm(body.file, { force: true });
    return insertion;
  }

  async function end(hold: RunHold, how: RunEnd, outcome: RunOutcome): Promise<RunEnded | undefined> {
    const body = 'result' in outcome ? outcome.result : outcome.delivery.body;
    assertSpooled(body, join(spoolDir, hold.id));
    if ('file' in body && !(await writeParts(hold, outcome, body))) return undefined;
    if (!(await lanes.ends.submit(endingOf(hold, how, outcome)))) return undefined;
    if ('file' in body) await rm(body.file, { force: true });
    if ('result' in outcome) return {};
    onDelivery(hold.id);
    return { delivery: refOf({ id: hold.id, claim: INSERTED }) };
  }

  function writeParts(
    hold: RunHold,
    outcome: RunOutcome,
    { file, size }: Extract<NewBody, { file: string }>,
  ) {
    return 'result' in outcome
      ? runBodies.writeResult(hold, file, size)
      : runBodies.writeDelivered(hold, file, size);
  }

  function endingOf(hold: RunHold, how: RunEnd, outcome: RunOutcome): RunEnding {
    return {
      ...hold,
      end: { ...how, endedAt: times.toDatabase(how.endedAt) },
      ...('result' in outcome
        ? { result: inRow(outcome.result) }
        : { delivery: insertionOf(outcome.delivery, keyring, times) }),
    };
  }

  async function cancel(projectId: string, runId: string): Promise<boolean> {
    const marked = await persistence.persist(() => markRun(database, projectId, runId));
    if (marked) onMarked();
    return marked;
  }

  return {
    insert: run => gate.run(() => insert(run)),
    claim: wanted => claim({ wanted }),
    claimStrays: (known, before, limit) => claim({ known, before, limit }),
    body: ref => gate.run(() => runBodies.readRequest(runHoldOf(ref).id)),

    begin: (ref, startedAt) =>
      held(ref, 'lost', hold => lanes.starts.submit({ ...hold, startedAt: times.toDatabase(startedAt) })),
    withdraw: ref => held(ref, false, hold => lanes.withdrawals.submit(hold)),
    end: (ref, how, outcome) => held(ref, undefined, hold => end(hold, how, outcome)),

    cancel: (projectId, runId) => gate.run(async () => isRunId(runId) && cancel(projectId, runId)),
    toCancel: () => read(() => markedRuns(database, owner())),

    find: (projectId, runId) =>
      read(async () => (isRunId(runId) ? findRun(database, projectId, runId) : undefined)),
    result: (projectId, runId) =>
      gate.run(async () => (isRunId(runId) ? runBodies.readResult(projectId, runId) : undefined)),
    list: (filter, page) => read(() => listRuns(database, filter, page)),
    oldestQueuedAt: () => read(() => oldestQueuedAt(database)),
    ended: runIds =>
      read(async () => {
        const live = new Set(await liveRuns(database, runIds.filter(isRunId)));
        return runIds.filter(runId => !live.has(runId));
      }),

    prune: (before, limit) =>
      gate.run(async () => {
        const bound = times.toDatabase(before);
        await persistence.persist(() => pruneKeys(database, limit));
        return inChunks(limit, PRUNE_CHUNK, size =>
          persistence.persist(() => pruneRuns(database, bound, size)),
        );
      }),
  };
}
