/**
 * Who waits for the end of a run. One that ends in this process is told at once; for all others the store is
 * asked, about all of them together, a few times a second.
 */
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { RunStore } from '../store/runs.ts';

export interface Waits {
  /** Resolves when the run has ended, when the time is up, or when `signal` aborts. */
  wait(runId: string, options: { ms: number; signal: AbortSignal }): Promise<void>;
  ended(runId: string): void;
}

export interface WaitsOptions {
  readonly runs: Pick<RunStore, 'ended'>;
  readonly clock: Clock;
  readonly log: Logger;
}

const LOOK_MS = 250;

export function createWaits({ runs, clock, log }: WaitsOptions): Waits {
  const waiting = new Map<string, Set<() => void>>();
  let looking = false;

  function ended(runId: string): void {
    for (const tell of waiting.get(runId) ?? []) tell();
  }

  async function look(): Promise<void> {
    try {
      for (const runId of await runs.ended([...waiting.keys()])) ended(runId);
    } catch (error) {
      log.debug({ err: error as Error }, 'no look at the runs that somebody waits for');
    }
    looking = false;
    lookLater();
  }

  function lookLater(): void {
    if (looking || waiting.size === 0) return;
    looking = true;
    clock.after(LOOK_MS, () => void look());
  }

  return {
    async wait(runId, { ms, signal }) {
      if (signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const others = waiting.get(runId) ?? new Set();
      waiting.set(runId, others.add(resolve));
      const cancel = clock.after(ms, resolve);
      const abort = (): void => resolve();
      signal.addEventListener('abort', abort, { once: true });
      lookLater();
      await promise;
      cancel();
      signal.removeEventListener('abort', abort);
      others.delete(resolve);
      if (others.size === 0) waiting.delete(runId);
    },
    ended,
  };
}
