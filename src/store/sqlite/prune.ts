/** Deletes deliveries that settled long enough ago. The files of their bodies go after the commit. */
import type { DatabaseSync } from 'node:sqlite';
import { formatRunId } from './key.ts';
import type { Handlers } from './protocol.ts';

export function pruneHandler(db: DatabaseSync): Handlers['prune'] {
  const old = db.prepare(
    `SELECT d.id, c.run_id, c.file_size FROM deliveries d INDEXED BY deliveries_settled
     JOIN contents c ON c.id = d.id WHERE d.settled_at < ? ORDER BY d.settled_at LIMIT ?`,
  );
  const deletions = [
    db.prepare('DELETE FROM attempts WHERE delivery = ?'),
    db.prepare('DELETE FROM contents WHERE id = ?'),
    db.prepare('DELETE FROM deliveries WHERE id = ?'),
  ];
  return ({ before, limit }) => {
    const rows = old.all(before, limit);
    for (const row of rows) {
      for (const deletion of deletions) deletion.run(row['id'] as number);
    }
    const files = rows.filter(row => row['file_size'] !== null);
    return { count: rows.length, files: files.map(row => formatRunId(row['run_id'] as Uint8Array)) };
  };
}
