/** Ends a pending delivery by hand. Its owner hears of it when it next asks for something. */
import type { DatabaseSync } from 'node:sqlite';
import { STATES } from '../../codes.ts';
import type { RecordAttempt } from '../attempts.ts';
import { NO_TIME } from '../ownership.ts';
import type { Handlers } from '../protocol.ts';
import type { LocateDelivery } from './locate.ts';

interface CancelOptions {
  readonly db: DatabaseSync;
  readonly record: RecordAttempt;
  readonly locate: LocateDelivery;
}

interface CancelRow {
  readonly project: string;
  readonly state: number;
  readonly round: number;
  readonly attempts: number;
  readonly cause: number;
  readonly in_flight: number | null;
}

export function cancelDeliveryHandler({ db, record, locate }: CancelOptions): Handlers['cancelDelivery'] {
  const find = db.prepare(
    'SELECT project, state, round, attempts, cause, in_flight FROM deliveries WHERE id = ?',
  );
  const settle = db.prepare(
    `UPDATE deliveries SET state = ${STATES.indexOf('cancelled')}, owner = NULL, claim = NULL, settled_at = ?,
       last_status = iif(in_flight IS NULL, last_status, NULL), in_flight = NULL
     WHERE id = ?`,
  );
  return ({ runId, at, project }) => {
    const id = locate.key(runId);
    const row = id === undefined ? undefined : (find.get(id) as CancelRow | undefined);
    if (id === undefined || row === undefined) return 'not_found';
    if (project !== undefined && row.project !== project) return 'not_found';
    if (STATES[row.state] !== 'pending') return 'settled';
    const { round, cause, attempts: number, in_flight: startedAt } = row;
    if (startedAt !== null) {
      record({ id, round, cause, attempt: { number, startedAt, timings: NO_TIME, error: 'cancelled' } });
    }
    settle.run(at, id);
    return 'cancelled';
  };
}
