/**
 * Deliveries by where they come from and where they go to, for lists. An index of SQLite's own would have to be
 * kept up at every insert, each of which would then write a page here and a page there: it made the WAL three
 * times as large. So the newest few thousand deliveries are in no such order, and lists look through them; the
 * others were put in order together, thousands at a time. The mark is the last of these.
 */
import type { DatabaseSync } from 'node:sqlite';

/** How many are put in order at once, and how many of the newest are left as they are. */
export const CATALOGUE_CHUNK = 4_000;

export interface Place {
  readonly project: string;
  readonly app: string;
  readonly host: string;
}

/** To be told of every new delivery. */
export type Catalogue = (id: number, place: Place) => void;

export function createCatalogue(db: DatabaseSync): Catalogue {
  const readMark = markReader(db);
  const catchUp = catchingUp(db, readMark);
  const ofApp = db.prepare('INSERT OR IGNORE INTO delivery_apps (of_project, name, id) VALUES (?, ?, ?)');
  const ofHost = db.prepare('INSERT OR IGNORE INTO delivery_hosts (name, id) VALUES (?, ?)');
  // It may be beyond the one in the database where a batch was undone: then some are put in order early.
  let mark = readMark();
  let recent = 0;

  return (id, { project, app, host }) => {
    // Of a call that took so long that others of its time are in order already.
    if (id <= mark) {
      ofApp.run(project, app, id);
      ofHost.run(host, id);
      return;
    }
    recent += 1;
    if (recent < CATALOGUE_CHUNK) return;
    recent = 0;
    mark = catchUp();
  };
}

/** The last delivery that is in order. */
export function markReader(db: DatabaseSync): () => number {
  const select = db.prepare('SELECT mark FROM catalogue');
  return () => select.get()!['mark'] as number;
}

function catchingUp(db: DatabaseSync, readMark: () => number): () => number {
  const last = db.prepare('SELECT id FROM deliveries WHERE id > ? ORDER BY id DESC LIMIT 1 OFFSET ?');
  // In their order, so that each page is written once.
  const fill = [
    `INSERT OR IGNORE INTO delivery_apps (of_project, name, id)
     SELECT project, app, id FROM deliveries NOT INDEXED WHERE id > ? AND id <= ? ORDER BY project, app, id`,
    `INSERT OR IGNORE INTO delivery_hosts (name, id)
     SELECT host, id FROM deliveries NOT INDEXED WHERE id > ? AND id <= ? ORDER BY host, id`,
  ].map(sql => db.prepare(sql));
  const move = db.prepare('UPDATE catalogue SET mark = ?');
  return () => {
    const before = readMark();
    const after = last.get(before, CATALOGUE_CHUNK)?.['id'] as number | undefined;
    if (after === undefined) return before;
    for (const statement of fill) statement.run(before, after);
    move.run(after);
    return after;
  };
}
