/**
 * What has to be done now and then: partitions for the days to come; the rows of nodes long dead, and the parts
 * of requests that never became runs, go.
 */
import type { Logger } from '../../log.ts';
import { type ConnectionOptions, withClient } from './connection.ts';
import { describe } from './faults.ts';
import { OWNS } from './freeing.ts';
import { DAY_MS, makePartitions } from './partitions.ts';

const EVERY_MS = 60 * 60_000;
const AGAIN_MS = 60_000;
const TIMEOUT_MS = 30_000;

/** Only after a long time: what was sent to the database in a node's last moments must find its owner. */
const FORGET_NODES = `
  DELETE FROM afterword_nodes n WHERE beat_at < clock_timestamp() - interval '1 hour'
    AND NOT ${OWNS('n.id')}`;

/** After a day nobody is about to insert the run any more. Its id begins with its millisecond. */
const FORGET_PARTS = `
  DELETE FROM afterword_run_parts p
  WHERE p.id < rpad(lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${DAY_MS}), 12, '0'),
      32, '0')::uuid
    AND NOT EXISTS (SELECT FROM afterword_runs r WHERE r.id = p.id)`;

/** Tells the milliseconds until the next time. */
export async function keepUp(connection: ConnectionOptions, log: Logger): Promise<number> {
  try {
    await withClient({ connection, timeoutMs: TIMEOUT_MS }, async client => {
      await makePartitions(client);
      await client.query(FORGET_NODES);
      await client.query(FORGET_PARTS);
    });
    return EVERY_MS;
  } catch (error) {
    log.warn(
      { event: 'store_upkeep_failed', detail: describe(error) },
      'the store was not kept up; once more soon',
    );
    return AGAIN_MS;
  }
}

export const FIRST_UPKEEP_MS = EVERY_MS;
