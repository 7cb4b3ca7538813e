/**
 * Attempts: counted in the delivery before they are sent, taken back where they were not sent after all,
 * recorded in a row of their own when they end. All of it only while the delivery is pending, in the round that
 * is meant, and this node's own that wants it.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { AttemptResult } from '../store.ts';
import { REASONS, STATES, TRIGGERS } from '../codes.ts';
import type { Handlers } from './protocol.ts';

const HELD = 'id = ? AND round = ? AND owner = ? AND state = 0';

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
        first_byte_ms, total_ms, status, error, excerpt, target, headers)
     VALUES (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM attempts WHERE delivery = ?1),
       ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)`,
  );
  const elsewhere = db.prepare('SELECT target FROM overrides WHERE id = ?');
  const targetOf = (id: number, cause: number) =>
    TRIGGERS[cause] === 'manual' ? (elsewhere.get(id)?.['target'] as string | undefined) : undefined;
  return ({ id, round, cause, attempt }) => {
    const { number, startedAt, timings, status, error, excerpt, headers } = attempt;
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
      targetOf(id, cause) ?? null,
      headers ?? null,
    );
  };
}

export function beginAttemptHandler({ db }: AttemptOptions): Handlers['beginAttempt'] {
  const begin = db.prepare(
    `UPDATE deliveries SET attempts = attempts + 1, in_flight = ?
     WHERE ${HELD}`,
  );
  const begun = db.prepare(`SELECT 1 FROM deliveries WHERE ${HELD} AND in_flight = ?`);
  return ({ id, round, startedAt }, _blobs, replay, owner) => {
    if (replay && begun.get(id, round, owner, startedAt) !== undefined) return true;
    return begin.run(startedAt, id, round, owner).changes === 1;
  };
}

export function withdrawAttemptHandler({ db }: AttemptOptions): Handlers['withdrawAttempt'] {
  const withdraw = db.prepare(
    `UPDATE deliveries SET attempts = attempts - 1, in_flight = NULL
     WHERE ${HELD} AND in_flight IS NOT NULL`,
  );
  const withdrawn = db.prepare(`SELECT 1 FROM deliveries WHERE ${HELD} AND in_flight IS NULL`);
  return ({ id, round }, _blobs, replay, owner) => {
    if (withdraw.run(id, round, owner).changes === 1) return true;
    return replay && withdrawn.get(id, round, owner) !== undefined;
  };
}

export function endAttemptHandler({ db, record }: AttemptOptions): Handlers['endAttempt'] {
  const again = db.prepare(
    `UPDATE deliveries SET in_flight = NULL, last_status = ?, due_at = ? WHERE ${HELD} RETURNING cause`,
  );
  const settle = db.prepare(
    `UPDATE deliveries SET in_flight = NULL, last_status = ?, state = ?, reason = ?, settled_at = ?
     WHERE ${HELD} RETURNING cause`,
  );
  // One that was cut off or cancelled before it could end has the same number and time, and an error of its own.
  const ended = db.prepare(
    `SELECT 1 FROM attempts WHERE delivery = ? AND round = ? AND number = ? AND started_at = ? AND error IS ?`,
  );

  return ({ id, round, attempt, next, now }, [excerpt], replay, owner) => {
    const { number, startedAt, status = null, error = null } = attempt;
    if (replay && ended.get(id, round, number, startedAt, error) !== undefined) return true;
    const reason = next.state === 'failed' ? REASONS.indexOf(next.reason) : null;
    const row =
      next.state === 'pending'
        ? again.get(status, next.dueAt, id, round, owner)
        : settle.get(status, STATES.indexOf(next.state), reason, now, id, round, owner);
    if (row === undefined) return false;
    record({
      id,
      round,
      cause: row['cause'] as number,
      attempt: { ...attempt, ...(excerpt && { excerpt }) },
    });
    return true;
  };
}
