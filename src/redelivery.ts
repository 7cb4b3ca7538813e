/**
 * Carries out redelivery in bulk: takes a job that nobody has, goes through what its filter finds, the newest
 * first, and gives each a new round, a few at a time. How far it has come is written along with each step, so
 * a job whose node dies goes on elsewhere where it was.
 *
 * A step waits while the job's project, or all of them together, has much that is pending: what is redelivered
 * must not stand in the way of what is new. It does not wait for ever, since a project may always have much.
 */
import type { Clock } from './clock.ts';
import type { Logger } from './log.ts';
import type { ClaimedJob, Ledger } from './store/ledger.ts';

export interface RedeliveriesOptions {
  readonly ledger: Pick<Ledger, 'claimJob' | 'stepJob' | 'runIds' | 'pendingOf'>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Redeliveries {
  /** There may be a job to carry out. From the first time on, it looks again by itself. */
  expect(): void;
  /** Begins no further step, and waits a little for the one under way. */
  stop(): Promise<void>;
}

const STEP = 200;
/** Another step begins below this many pending deliveries. */
const MOST_PENDING = 1_000;
/** Between two looks at that, and how often a step waits for it. */
const PENDING_LOOK_MS = 250;
const PENDING_LOOKS = 120;
/** Between two looks for a job that another node has left or taken in. */
const LOOK_MS = 2_000;
/** A store that cannot be written must not hold up a stop. */
const STOP_MS = 1_000;

export function createRedeliveries({ ledger, clock, log }: RedeliveriesOptions): Redeliveries {
  let working: Promise<void> | undefined;
  let cancelLook: (() => void) | undefined;
  let wake: (() => void) | undefined;
  /** The job that this node has; it is kept where a step of it fails, and tried again. */
  let held: ClaimedJob | undefined;
  let expected = false;
  const stopping = new AbortController();
  const { signal } = stopping;

  function pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = clock.after(ms, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  }

  async function untilRoom({ filter: { projectId } }: ClaimedJob): Promise<void> {
    for (let look = 0; look < PENDING_LOOKS && !signal.aborted; look += 1) {
      if ((await ledger.pendingOf(projectId)).pending < MOST_PENDING) return;
      await pause(PENDING_LOOK_MS);
    }
  }

  /** One step; what is left to do of the job, if anything is and it is still this node's. */
  async function step(job: ClaimedJob): Promise<ClaimedJob | undefined> {
    const page = { limit: STEP, ...(job.before !== undefined && { before: job.before }) };
    const { runIds, next } = await ledger.runIds(job.filter, page);
    const at = clock.now();
    const done = await ledger.stepJob(job.ref, { runIds, at, ...(next !== undefined && { next }) });
    if (done === undefined) return undefined;
    if (next !== undefined) return { ...job, before: next };
    const { seen, redelivered } = done;
    log.info({ job_id: job.id, seen, redelivered }, 'redelivery in bulk has ended');
    return undefined;
  }

  async function carryOut(): Promise<void> {
    while (held !== undefined) {
      await untilRoom(held);
      if (signal.aborted) return;
      held = await step(held);
    }
  }

  async function work(): Promise<void> {
    try {
      await carryOut();
      while (expected && !signal.aborted) {
        expected = false; // whoever expects one from here on is heard
        held = await ledger.claimJob();
        expected ||= held !== undefined;
        if (held)
          log.info({ job_id: held.id, total: held.total, seen: held.seen }, 'redelivery in bulk begins');
        await carryOut();
      }
    } catch (error) {
      if (!signal.aborted) log.error({ err: error as Error }, 'redelivery in bulk could not go on');
    }
  }

  function look(): void {
    cancelLook?.();
    expected = true;
    if (signal.aborted || working !== undefined) return;
    working = work().finally(() => {
      working = undefined;
      if (!signal.aborted) cancelLook = clock.after(LOOK_MS, look);
    });
  }

  return {
    expect: look,
    async stop() {
      stopping.abort();
      cancelLook?.();
      wake?.();
      const late = Promise.withResolvers<void>();
      const cancel = clock.after(STOP_MS, late.resolve);
      await Promise.race([working, late.promise]);
      cancel();
    },
  };
}
