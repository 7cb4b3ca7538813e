/**
 * Attempts: counted in the delivery before they are sent, taken back where they were not sent after all,
 * recorded in a row of their own when they end. All of it only while the delivery is pending and this
 * node's own that wants it.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { AttemptResult } from '../store.ts';
import { REASONS, STATES } from '../codes.ts';
import type { Handlers } from './protocol.ts';

interface AttemptOptions {
  readonly db: DatabaseSync;
  readonly record: RecordAttempt;
}

interface AttemptRow {
  readonly id: number;
  readonly round: number;
  /** The trigger, as the delivery's row has it. */
  readonly cause: number;
  readonly attempt: AttemptResult;
}

export type RecordAttempt = (row: AttemptRow) => void;

export function attemptRecorder(db: DatabaseSync): RecordAttempt {
  const insert = db.prepare(
    `INSERT INTO attempts
       (delivery, ordinal, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms,
        first_byte_ms, total_ms, status, error, excerpt)
     VALUES (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM attempts WHERE delivery = ?1),
       ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)`,
  );
  return ({ id, round, cause, attempt }) => {
    const { number, startedAt, timings, status, error, excerpt } = attempt;
    insert.run(
      id,
      round,
      number,
      cause,
      startedAt,
      timings.queueMs,
      timings.dnsMs ?? null,
      timings.connectMs ?? null,
      timings.tlsMs ?? null,
      timings.firstByteMs ?? null,
      timings.totalMs,
      status ?? null,
      error ?? null,
      excerpt ?? null,
    );
  };
}

export function beginAttemptHandler({ db }: AttemptOptions): Handlers['beginAttempt'] {
  const begin = db.prepare(
    `UPDATE deliveries SET attempts = attempts + 1, in_flight = ?
     WHERE id = ? AND owner = ? AND state = 0`,
  );
  const begun = db.prepare(
    'SELECT 1 FROM deliveries WHERE id = ? AND owner = ? AND state = 0 AND in_flight = ?',
  );
  return ({ id, startedAt }, _blobs, replay, owner) => {
    if (replay && begun.get(id, owner, startedAt) !== undefined) return true;
    return begin.run(startedAt, id, owner).changes === 1;
  };
}

export function withdrawAttemptHandler({ db }: AttemptOptions): Handlers['withdrawAttempt'] {
  const withdraw = db.prepare(
    `UPDATE deliveries SET attempts = attempts - 1, in_flight = NULL
     WHERE id = ? AND owner = ? AND state = 0 AND in_flight IS NOT NULL`,
  );
  const withdrawn = db.prepare(
    'SELECT 1 FROM deliveries WHERE id = ? AND owner = ? AND state = 0 AND in_flight IS NULL',
  );
  return ({ id }, _blobs, replay, owner) => {
    if (withdraw.run(id, owner).changes === 1) return true;
    return replay && withdrawn.get(id, owner) !== undefined;
  };
}

export function endAttemptHandler({ db, record }: AttemptOptions): Handlers['endAttempt'] {
  const again = db.prepare(
    `UPDATE deliveries SET in_flight = NULL, due_at = ?
     WHERE id = ? AND owner = ? AND state = 0 RETURNING round, cause`,
  );
  const settle = db.prepare(
    `UPDATE deliveries SET in_flight = NULL, state = ?, reason = ?, settled_at = ?
     WHERE id = ? AND owner = ? AND state = 0 RETURNING round, cause`,
  );
  const ended = db.prepare('SELECT 1 FROM attempts WHERE delivery = ? AND number = ? AND started_at = ?');

  return ({ id, attempt, next, now }, [excerpt], replay, owner) => {
    if (replay && ended.get(id, attempt.number, attempt.startedAt) !== undefined) return true;
    const reason = next.state === 'failed' ? REASONS.indexOf(next.reason) : null;
    const row =
      next.state === 'pending'
        ? again.get(next.dueAt, id, owner)
        : settle.get(STATES.indexOf(next.state), reason, now, id, owner);
    if (row === undefined) return false;
    record({
      id,
      round: row['round'] as number,
      cause: row['cause'] as number,
      attempt: { ...attempt, ...(excerpt && { excerpt }) },
    });
    return true;
  };
}
