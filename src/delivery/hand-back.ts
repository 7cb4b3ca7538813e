/**
 * Gives the store back, at the end, what this node still owns, so that nobody has to find out first that it
 * is gone. Whatever hinders it is only logged: what is not handed back is recovered.
 */
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { Store } from '../store/store.ts';

const PATIENCE_MS = 3_000;

export interface HandBackOptions {
  readonly store: Pick<Store, 'release'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Whether the store has taken it back. */
export async function handBack({ store, clock, log }: HandBackOptions): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const cancel = clock.after(PATIENCE_MS, () => {
    log.warn('deliveries are not handed back in time');
    late.resolve(false);
  });
  const released = store.release().then(
    count => {
      if (count > 0) log.info({ count }, 'deliveries handed back');
      return true;
    },
    (error: unknown) => {
      log.warn({ err: error }, 'deliveries are not handed back');
      return false;
    },
  );
  const done = await Promise.race([released, late.promise]);
  cancel();
  return done;
}
