/** Deletes deliveries that settled long enough ago. The files of their bodies go after the commit. */
import type { DatabaseSync } from 'node:sqlite';
import type { Place } from './catalogue.ts';
import { formatRunId } from './key.ts';
import type { Handlers } from './protocol.ts';

interface OldRow extends Place {
  readonly id: number;
  readonly run_id: Uint8Array;
  readonly file_size: number | null;
}

export function pruneHandler(db: DatabaseSync): Handlers['prune'] {
  const old = db.prepare(
    `SELECT d.id, d.project, d.app, d.host, c.run_id, c.file_size FROM deliveries d INDEXED BY deliveries_settled
     JOIN contents c ON c.id = d.id WHERE d.settled_at < ? ORDER BY d.settled_at LIMIT ?`,
  );
  const deletions = [
    db.prepare('DELETE FROM attempts WHERE delivery = ?'),
    ...['overrides', 'traces', 'contents', 'deliveries'].map(table =>
      db.prepare(`DELETE FROM ${table} WHERE id = ?`),
    ),
  ];
  const ofApp = db.prepare('DELETE FROM delivery_apps WHERE of_project = ? AND name = ? AND id = ?');
  const ofHost = db.prepare('DELETE FROM delivery_hosts WHERE name = ? AND id = ?');
  return ({ before, limit }) => {
    const rows = old.all(before, limit) as unknown as OldRow[];
    for (const { id, project, app, host } of rows) {
      for (const deletion of deletions) deletion.run(id);
      ofApp.run(project, app, id);
      ofHost.run(host, id);
    }
    const files = rows.filter(row => row.file_size !== null);
    return { count: rows.length, files: files.map(row => formatRunId(row.run_id)) };
  };
}
