/**
 * What a node looks for all the time: nodes that are dead, whose deliveries it takes over, and deliveries that
 * wait to be claimed, in case that nobody rang.
 */
import type { Logger } from '../../log.ts';
import type { Database, Statement } from './connection.ts';
import { findDead, type Takeover, takeOver } from './freeing.ts';

const WAITING: Statement = {
  name: 'afterword_waiting',
  text: 'SELECT afterword_waiting($1::text[]) AS waiting',
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
  /** Takes over from all that are dead; tells how many deliveries. */
  takeOver(): Promise<number>;
  /** Whether deliveries wait to be claimed. */
  waiting(): Promise<boolean>;
}

export function createLooking({ database, log, deadMs, owner, keys }: LookingOptions): Looking {
  return {
    async takeOver() {
      const takeover: Takeover = { deadMs, me: owner() };
      let total = 0;
      for (const dead of await findDead(database, takeover)) {
        let count = 0;
        for (let freed = -1; freed !== 0; count += freed) freed = await takeOver(database, dead, takeover);
        if (count === 0) continue;
        total += count;
        log.warn(
          { event: 'takeover', node: dead.name, deliveries: count },
          'deliveries of a dead node taken over',
        );
      }
      return total;
    },
    async waiting() {
      return (await database.query<{ waiting: boolean }>(WAITING, [keys])).rows[0]!.waiting;
    },
  };
}
