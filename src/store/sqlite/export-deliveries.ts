/** Reads the deliveries of an embedded store out, pending and settled apart. */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { TRIGGERS } from '../codes.ts';
import { deliveryRecord, sizeOfAnswer } from '../rows.ts';
import type { Sealed } from '../seal.ts';
import type { NewBody } from '../store.ts';
import type { StoredDelivery } from '../stored.ts';
import type { PartReader } from './export-part.ts';
import { formatRunId } from './key.ts';
import { attemptsReader, type KeyedRow } from './reading.ts';

interface DeliveryRow extends KeyedRow {
  readonly attempts: number;
  readonly cause: number;
  readonly run_id: Uint8Array;
  readonly key_id: string | null;
  readonly sealed: Uint8Array | null;
  /** Of a round to another target. */
  readonly other_key_id: string | null;
  readonly other_sealed: Uint8Array | null;
  readonly file_size: number | null;
  readonly body: Uint8Array | null;
}

/** After the start all pending deliveries are without an owner. */
const WHICH = {
  pending: 'd.state = 0 AND d.owner IS NULL',
  settled: 'd.state <> 0',
} as const;

export function deliveryReader(
  db: DatabaseSync,
  spoolDir: string,
  part: keyof typeof WHICH,
): PartReader<StoredDelivery> {
  return {
    count(after) {
      const sql = `SELECT count(*) AS count FROM deliveries d WHERE ${WHICH[part]} AND d.id > ?`;
      return db.prepare(sql).get(after)!['count'] as number;
    },
    *read(after) {
      const rows = db.prepare(
        `SELECT d.id, d.project, c.app, c.target, o.target AS other_target, o.key_id AS other_key_id,
           o.sealed AS other_sealed, c.status, c.created_at, t.traceparent, d.state, d.reason, d.round, d.due_at,
           d.settled_at, d.attempts, d.cause, c.run_id, c.key_id, c.sealed, c.file_size, c.body
         FROM deliveries d JOIN contents c ON c.id = d.id LEFT JOIN overrides o ON o.id = d.id
         LEFT JOIN traces t ON t.id = d.id WHERE ${WHICH[part]} AND d.id > ? ORDER BY d.id`,
      );
      const attemptsOf = attemptsReader(db);
      for (const each of rows.iterate(after)) {
        const row = each as unknown as DeliveryRow;
        const runId = formatRunId(row.run_id);
        yield {
          ...deliveryRecord(runId, row, attemptsOf(row.id)),
          position: row.id,
          ...sealedAs('sealed', row.key_id, row.sealed),
          ...sealedAs('otherSealed', row.other_key_id, row.other_sealed),
          body: bodyOf(row, join(spoolDir, runId)),
          counted: row.attempts,
          trigger: TRIGGERS[row.cause]!,
        };
      }
    },
    weightOf({ body, attempts }) {
      const answers = attempts.reduce((sum, attempt) => sum + sizeOfAnswer(attempt), 0);
      return answers + ('bytes' in body ? body.bytes.byteLength : 0);
    },
  };
}

function sealedAs<Name extends string>(
  name: Name,
  keyId: string | null,
  sealed: Uint8Array | null,
): Partial<Record<Name, Sealed>> {
  return keyId === null || sealed === null ? {} : ({ [name]: { keyId, sealed } } as Record<Name, Sealed>);
}

function bodyOf({ file_size: size, body }: DeliveryRow, file: string): NewBody {
  return size === null ? { bytes: body ?? new Uint8Array() } : { file, size }; // no bytes are NULL
}
