/** A node's last word: that it is gone, and what it owned may be taken over at once. */
import { type ConnectionOptions, withClient } from './connection.ts';
import { OWNS } from './freeing.ts';

const TIMEOUT_MS = 2_000;

/** Its row stays for as long as deliveries or runs name it. */
const LEAVE = `
  WITH left_behind AS (SELECT ${OWNS('$1::int')} AS anything),
  removed AS (
    DELETE FROM afterword_nodes WHERE id = $1::int AND NOT (SELECT anything FROM left_behind)
  )
  UPDATE afterword_nodes SET beat_at = '-infinity'
  WHERE id = $1::int AND (SELECT anything FROM left_behind)`;

export async function leave(connection: ConnectionOptions, owner: number): Promise<void> {
  await withClient({ connection, timeoutMs: TIMEOUT_MS }, client => client.query(LEAVE, [owner]));
}
