/** Writes a new delivery: its rows, its secret sealed. */
import type { DatabaseSync } from 'node:sqlite';
import { syncDirectory } from '../directory.ts';
import { hostOf } from '../ledger.ts';
import { type Keyring, seal } from '../seal.ts';
import type { Confidential } from '../store.ts';
import { createCatalogue } from './catalogue.ts';
import { KEYS_PER_MS, parseRunId, type RunKey } from './key.ts';
import type { Args, Handlers } from './protocol.ts';

interface InsertOptions {
  readonly db: DatabaseSync;
  readonly keyring: Keyring;
  readonly spoolDir: string;
}

export function insertHandler({ db, keyring, spoolDir }: InsertOptions): Handlers['insert'] {
  const narrow = db.prepare(
    `INSERT INTO deliveries (id, project, app, host, state, owner, due_at, round, attempts, in_flight, cause)
     VALUES (?, ?, ?, ?, 0, ?, ?, 1, ?, ?, 0) ON CONFLICT DO NOTHING`,
  );
  const wide = db.prepare(
    `INSERT INTO contents (id, run_id, app, target, status, created_at, key_id, sealed, file_size, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const trace = db.prepare('INSERT INTO traces (id, traceparent) VALUES (?, ?)');
  const present = db.prepare('SELECT id FROM contents WHERE id BETWEEN ? AND ? AND run_id = ?');
  const catalogue = createCatalogue(db);
  let sequence = 0;

  /** Rolls on through the milliseconds, so that a conflict is as good as never met. */
  function insertNarrow(key: RunKey, args: Args<'insert'>, owner: number): number {
    const { project, app, owned, createdAt, begunAt } = args;
    const host = hostOf(args.target);
    for (let tries = 0; tries < KEYS_PER_MS; tries += 1) {
      sequence = (sequence + 1) % KEYS_PER_MS;
      const id = key.first + sequence;
      const begun = begunAt === undefined ? 0 : 1;
      const row = [id, project, app, host, owned ? owner : null, createdAt, begun, begunAt ?? null];
      if (narrow.run(...row).changes === 0) continue;
      catalogue(id, { project, app, host });
      return id;
    }
    throw new RangeError('the millisecond of this run id has no free key left');
  }

  return (args, [body, secret], replay, owner) => {
    const key = parseRunId(args.runId);
    if (key === undefined) throw new RangeError(`not a usable run id: ${args.runId}`);
    if (replay) {
      const row = present.get(key.first, key.last, key.bytes);
      if (row !== undefined) return row['id'] as number;
    }
    // The capture synced the file; its name is durable only with the directory.
    if (args.fileSize !== undefined) syncDirectory(spoolDir);

    const id = insertNarrow(key, args, owner);
    const confidential: Confidential = {
      ...(secret && { secret }),
      ...(args.authorization !== undefined && { authorization: args.authorization }),
    };
    const sealed = seal(confidential, args.runId, keyring);
    wide.run(
      id,
      key.bytes,
      args.app,
      args.target,
      args.status,
      args.createdAt,
      sealed?.keyId ?? null,
      sealed?.sealed ?? null,
      args.fileSize ?? null,
      body ?? null,
    );
    if (args.traceparent !== undefined) trace.run(id, args.traceparent);
    return id;
  };
}
