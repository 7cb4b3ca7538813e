/**
 * What a node looks for all the time: nodes that are dead, from whom it takes over, deliveries and runs that
 * wait to be claimed, and runs of its own that are to be cancelled, in case that nobody rang; and whether anybody
 * wants to be told of what changes.
 */
import type { QueryResultRow } from 'pg';
import type { Logger } from '../../log.ts';
import type { Database, Statement } from './connection.ts';
import { findDead, freeAll, type Takeover, takeOver, totalOf } from './freeing.ts';

const LOOK: Statement = {
  name: 'afterword_look',
  text: `
    SELECT afterword_waiting($1::text[]) OR afterword_runs_waiting($1::text[], $2::int) AS waiting,
      EXISTS (SELECT FROM afterword_followers WHERE until > clock_timestamp()) AS followed`,
};

export interface Seen {
  /** Some wait to be claimed, or to be cancelled here. */
  readonly waiting: boolean;
  /** Somebody follows what happens to deliveries, on whatever node. */
  readonly followed: boolean;
}

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
  look(): Promise<Seen>;
}

export function createLooking({ database, log, deadMs, owner, keys }: LookingOptions): Looking {
  return {
    async takeOver() {
      const takeover: Takeover = { deadMs, me: owner() };
      let total = 0;
      for (const dead of await findDead(database, takeover)) {
        const freed = await freeAll(() => takeOver(database, dead, takeover));
        if (totalOf(freed) === 0) continue;
        total += totalOf(freed);
        log.warn({ event: 'takeover', node: dead.name, ...freed }, 'taken over from a dead node');
      }
      return total;
    },
    async look() {
      const { waiting, followed } = (await database.query<Seen & QueryResultRow>(LOOK, [keys, owner()]))
        .rows[0]!;
      return { waiting, followed };
    },
  };
}
