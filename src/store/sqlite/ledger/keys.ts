/** The keys that came with what was done by hand, so that asking for it twice does it once. */
import type { DatabaseSync } from 'node:sqlite';
import { IDEMPOTENCY_MS } from '../../runs.ts';

export interface AskedWith {
  /** Undefined: whoever may act for all projects. */
  readonly project: string | undefined;
  readonly key: string;
  readonly fingerprint: Uint8Array;
  readonly at: number;
}

/** What a key made. */
export type Made = { readonly round: number } | { readonly job: string };

export interface LedgerKeys {
  /** `conflict`: it came with something else. Undefined: it stands for nothing. */
  find(asked: AskedWith): Made | 'conflict' | undefined;
  set(asked: AskedWith, made: Made): void;
}

export function createLedgerKeys(db: DatabaseSync): LedgerKeys {
  const select = db.prepare(
    'SELECT fingerprint, round, job FROM ledger_keys WHERE asker = ? AND key = ? AND made_at > ?',
  );
  const insert = db.prepare(
    `INSERT OR REPLACE INTO ledger_keys (asker, key, fingerprint, made_at, round, job) VALUES (?, ?, ?, ?, ?, ?)`,
  );
  return {
    find({ project, key, fingerprint, at }) {
      const row = select.get(project ?? '', key, at - IDEMPOTENCY_MS);
      if (row === undefined) return undefined;
      if (!Buffer.from(fingerprint).equals(row['fingerprint'] as Uint8Array)) return 'conflict';
      return row['job'] === null ? { round: row['round'] as number } : { job: row['job'] as string };
    },
    set({ project, key, fingerprint, at }, made) {
      const [round, job] = 'job' in made ? [null, made.job] : [made.round, null];
      insert.run(project ?? '', key, fingerprint, at, round, job);
    },
  };
}

/** Where there is no key there is nothing that was asked with it. */
export function askedWith(
  args: { readonly projectId?: string; readonly key?: string },
  fingerprint: Uint8Array | undefined,
  at: number,
): AskedWith | undefined {
  const { projectId: project, key } = args;
  return key === undefined || fingerprint === undefined ? undefined : { project, key, fingerprint, at };
}
