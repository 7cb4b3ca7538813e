/**
 * What a node looks for all the time: nodes that are dead, from whom it takes over, deliveries and runs that
 * wait to be claimed, and runs of its own that are to be cancelled, in case that nobody rang.
 */
import type { Logger } from '../../log.ts';
import type { Database, Statement } from './connection.ts';
import { findDead, freeAll, type Takeover, takeOver } from './freeing.ts';

const WAITING: Statement = {
  name: 'afterword_waiting',
  text: 'SELECT afterword_waiting($1::text[]) OR afterword_runs_waiting($1::text[], $2::int) AS waiting',
};

export interface LookingOptions {
  readonly database: Database;
  readonly log: Logger;
  readonly deadMs: number;
  readonly owner: () => number;
  /** The ids of the keys that this node has. */
  readonly keys: readonly string[];
}

export interface Looking {
  /** Takes over from all that are dead; tells how many deliveries and runs. */
  takeOver(): Promise<number>;
  /** Whether any wait to be claimed, or to be cancelled here. */
  waiting(): Promise<boolean>;
}

export function createLooking({ database, log, deadMs, owner, keys }: LookingOptions): Looking {
  return {
    async takeOver() {
      const takeover: Takeover = { deadMs, me: owner() };
      let total = 0;
      for (const dead of await findDead(database, takeover)) {
        const { deliveries, runs } = await freeAll(() => takeOver(database, dead, takeover));
        if (deliveries + runs === 0) continue;
        total += deliveries + runs;
        log.warn({ event: 'takeover', node: dead.name, deliveries, runs }, 'taken over from a dead node');
      }
      return total;
    },
    async waiting() {
      return (await database.query<{ waiting: boolean }>(WAITING, [keys, owner()])).rows[0]!.waiting;
    },
  };
}
