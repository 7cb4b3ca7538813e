/**
 * Carries work through faults of the environment: it is tried again, with longer and longer pauses, until it
 * succeeds or the store closes, when it gets one last try. Work must bear to be done twice, since after a
 * fault nobody knows whether it was done.
 */
import type { Clock } from '../../clock.ts';
import { describe, isEnvironmental } from './faults.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/** `replay`: it may have been done before, the answer lost. */
export type Work<T> = (replay: boolean) => Promise<T>;

/** Told after every try; the fault is undefined when it succeeded. */
export type OnTry = (fault: string | undefined) => void;

export interface Persistence {
  persist<T>(work: Work<T>, onTry?: OnTry): Promise<T>;
  /** From now on a fault is final. */
  stop(): void;
}

/** The work could not be done before the store closed. */
export class StoreClosedError extends Error {
  override readonly name = 'StoreClosedError';
}

export function createPersistence(clock: Clock): Persistence {
  const pauses = new Set<() => void>();
  let stopped = false;

  const pause = (ms: number) =>
    new Promise<void>(resolve => {
      const end = () => {
        cancel();
        pauses.delete(end);
        resolve();
      };
      const cancel = clock.after(ms, end);
      pauses.add(end);
    });

  return {
    async persist(work, onTry = () => {}) {
      let replay = false;
      for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(ms * 2, LONGEST_PAUSE_MS)) {
        try {
          const result = await work(replay);
          onTry(undefined);
          return result;
        } catch (error) {
          if (!isEnvironmental(error)) throw error;
          onTry(describe(error));
          if (stopped)
            throw new StoreClosedError('the store closed before this could be done', { cause: error });
        }
        replay = true;
        await pause(ms);
      }
    },
    stop() {
      stopped = true;
      for (const end of pauses) end();
    },
  };
}
