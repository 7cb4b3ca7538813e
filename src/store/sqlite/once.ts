/**
 * Operations that must not be carried out twice, and that leave nothing by which they could know themselves: the
 * answer to each is kept, so that it can be given again where it was lost along with the thread. Each node
 * numbers its own.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Args, Handlers, Kind } from './protocol.ts';

/** More than a batch can have. */
const KEPT = 1_024;

/** Its number among those of its node. */
export interface Numbered {
  readonly number: number;
}

export type NumberedKind = { [K in Kind]: Args<K> extends Numbered ? K : never }[Kind];

export type Once = <K extends NumberedKind>(run: Handlers[K]) => Handlers[K];

export function createOnce(db: DatabaseSync): Once {
  const given = db.prepare('SELECT answer FROM answers WHERE owner = ? AND number = ?');
  const keep = db.prepare('INSERT INTO answers (owner, number, answer) VALUES (?, ?, ?)');
  const forget = db.prepare('DELETE FROM answers WHERE owner = ? AND number <= ?');

  return <K extends NumberedKind>(run: Handlers[K]): Handlers[K] =>
    ((args: Args<K> & Numbered, blobs, replay, owner) => {
      const before = replay ? given.get(owner, args.number) : undefined;
      if (before !== undefined) return (JSON.parse(before['answer'] as string) as { value?: unknown }).value;
      const value = run(args, blobs, replay, owner);
      forget.run(owner, args.number - KEPT);
      keep.run(owner, args.number, JSON.stringify({ value }));
      return value;
    }) as Handlers[K];
}
