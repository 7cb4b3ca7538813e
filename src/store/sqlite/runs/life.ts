/**
 * What becomes of a run that was claimed: begun, given up, ended. All of it only through the claim that its
 * present owner got it by. And its mark, which anyone may set, for the owner to end it.
 */
import type { DatabaseSync } from 'node:sqlite';
import { RUN_STATES } from '../../codes.ts';
import { syncDirectory } from '../../directory.ts';
import { formatRunId } from '../key.ts';
import type { Handlers } from '../protocol.ts';
import type { Locate } from './locate.ts';
import type { Ended, Held } from './protocol.ts';

const HELD = 'id = ? AND owner = ? AND claim = ?';

export function beginRunHandler(db: DatabaseSync): Handlers['beginRun'] {
  const held = db.prepare(`SELECT begun, started_at FROM live_runs WHERE ${HELD}`);
  const begin = db.prepare(
    `UPDATE live_runs SET starts = starts + 1, started_at = ?, begun = 1 WHERE id = ? AND cancelled = 0`,
  );
  return ({ id, claim, startedAt }, _blobs, replay, owner) => {
    const row = held.get(id, owner, claim);
    if (row === undefined) return 'lost';
    if (replay && row['begun'] === 1 && row['started_at'] === startedAt) return 'begun';
    return begin.run(startedAt, id).changes === 1 ? 'begun' : 'cancelled';
  };
}

export function withdrawRunHandler(db: DatabaseSync): Handlers['withdrawRun'] {
  const withdraw = db.prepare(
    `UPDATE live_runs SET starts = starts - begun, started_at = iif(starts > begun, started_at, NULL), begun = 0,
       owner = NULL, claim = NULL, withdrawn_by = owner, withdrawn_claim = claim
     WHERE ${HELD}`,
  );
  const withdrawn = db.prepare(
    'SELECT 1 FROM live_runs WHERE id = ? AND withdrawn_by = ? AND withdrawn_claim = ?',
  );
  return ({ id, claim }, _blobs, replay, owner) => {
    if (withdraw.run(id, owner, claim).changes === 1) return true;
    return replay && withdrawn.get(id, owner, claim) !== undefined;
  };
}

interface EndOptions {
  readonly db: DatabaseSync;
  readonly spoolDir: string;
  /** Writes the delivery, in the same transaction. */
  readonly insert: Handlers['insert'];
}

export function endRunHandler({ db, spoolDir, insert }: EndOptions): Handlers['endRun'] {
  const held = db.prepare(`SELECT 1 FROM live_runs WHERE ${HELD}`);
  const write = db.prepare(
    `INSERT INTO ended_runs
       (id, run_id, project, app, created_at, target, starts, started_at, state, status, error, ended_at, owner,
        claim, had_file, delivery, file_size, body)
     SELECT l.id, r.run_id, l.project, l.app, r.created_at, r.target, l.starts, l.started_at, ?, ?, ?, ?, l.owner,
       l.claim, r.file_size IS NOT NULL, ?, ?, ?
     FROM live_runs l JOIN run_requests r ON r.id = l.id WHERE l.id = ?`,
  );
  const deletions = ['live_runs', 'run_requests'].map(table =>
    db.prepare(`DELETE FROM ${table} WHERE id = ?`),
  );
  const endedBy = endedReader(db);

  return ({ id, claim, end, fileSize, delivery }, blobs, replay, owner) => {
    const before = replay ? endedBy({ id, claim }, owner) : undefined;
    if (before !== undefined) return before;
    if (held.get(id, owner, claim) === undefined) return undefined;
    // Whoever wrote the file synced it; its name is durable only with the directory.
    if (fileSize !== undefined) syncDirectory(spoolDir);
    write.run(
      RUN_STATES.indexOf(end.state),
      end.statusCode,
      end.error ?? null,
      end.endedAt,
      delivery ? insert(delivery, blobs, replay, owner) : null,
      fileSize ?? null,
      delivery ? null : (blobs[0] ?? null),
      id,
    );
    for (const deletion of deletions) deletion.run(id);
    return endedBy({ id, claim }, owner);
  };
}

/** What an end answers: undefined where it was not this claim that ended the run. */
function endedReader(db: DatabaseSync): (held: Held, owner: number) => Ended | undefined {
  const select = db.prepare(`SELECT had_file, delivery FROM ended_runs WHERE ${HELD}`);
  return ({ id, claim }, owner) => {
    const row = select.get(id, owner, claim);
    if (row === undefined) return undefined;
    return {
      ...(row['delivery'] !== null && { delivery: row['delivery'] as number }),
      spooled: row['had_file'] === 1,
    };
  };
}

export function cancelRunHandler(db: DatabaseSync, locate: Locate): Handlers['cancelRun'] {
  const mark = db.prepare('UPDATE live_runs SET cancelled = 1 WHERE id = ? AND project = ?');
  return ({ project, runId }) => {
    const id = locate.live(runId);
    return id !== undefined && mark.run(id, project).changes === 1;
  };
}

export function runsToCancelHandler(db: DatabaseSync): Handlers['runsToCancel'] {
  const marked = db.prepare(
    `SELECT l.id, l.claim, r.run_id FROM live_runs l INDEXED BY live_runs_cancelled
     CROSS JOIN run_requests r ON r.id = l.id WHERE l.cancelled = 1 AND l.owner = ?`,
  );
  return (_args, _blobs, _replay, owner) =>
    marked.all(owner).map(row => ({
      runId: formatRunId(row['run_id'] as Uint8Array),
      id: row['id'] as number,
      claim: row['claim'] as number,
    }));
}
