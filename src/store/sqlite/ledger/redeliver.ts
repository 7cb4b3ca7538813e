/**
 * New rounds by hand. A delivery that has ended is pending again, without an owner. Where the round goes
 * elsewhere, what is confidential in it is sealed anew: the secret of the call, with the authorization that came
 * with the other target.
 */
import type { DatabaseSync } from 'node:sqlite';
import { STATES, TRIGGERS } from '../../codes.ts';
import type { OtherTarget, Redelivered } from '../../ledger.ts';
import { type Keyring, seal, type Sealed, unseal } from '../../seal.ts';
import type { Args, Handlers } from '../protocol.ts';
import { askedWith, type LedgerKeys } from './keys.ts';
import type { LocateDelivery } from './locate.ts';

const PENDING = STATES.indexOf('pending');

export interface RoundOptions {
  readonly db: DatabaseSync;
  readonly keyring: Keyring;
  readonly locate: LocateDelivery;
}

export interface NewRound {
  readonly runId: string;
  readonly project: string | undefined;
  readonly at: number;
  readonly to?: OtherTarget | undefined;
}

export type RoundMade =
  | Exclude<Redelivered, { outcome: 'repeated' | 'conflict' }>
  | { outcome: 'redelivered'; round: number };

export type MakeRound = (round: NewRound) => RoundMade;

export function roundMaker({ db, keyring, locate }: RoundOptions): MakeRound {
  const find = db.prepare('SELECT project, state, round FROM deliveries WHERE id = ?');
  const begin = db.prepare(
    `UPDATE deliveries SET state = ${PENDING}, reason = NULL, owner = NULL, claim = NULL, due_at = ?,
       round = round + 1, attempts = 0, in_flight = NULL, cause = ${TRIGGERS.indexOf('manual')}, settled_at = NULL
     WHERE id = ?`,
  );
  const override = db.prepare(
    'INSERT OR REPLACE INTO overrides (id, target, key_id, sealed) VALUES (?, ?, ?, ?)',
  );
  const own = db.prepare('DELETE FROM overrides WHERE id = ?');
  const sealAnew = resealing(db, keyring);

  return ({ runId, project, at, to }) => {
    const id = locate.key(runId);
    const row = id === undefined ? undefined : find.get(id);
    if (id === undefined || row === undefined) return { outcome: 'not_found' };
    if (project !== undefined && row['project'] !== project) return { outcome: 'not_found' };
    if (row['state'] === PENDING) return { outcome: 'pending' };
    if (to === undefined) own.run(id);
    else {
      const sealed = sealAnew(id, runId, to);
      if (sealed === 'unreadable') return { outcome: 'unreadable' };
      override.run(id, to.target, sealed?.keyId ?? null, sealed?.sealed ?? null);
    }
    begin.run(at, id);
    return { outcome: 'redelivered', round: (row['round'] as number) + 1 };
  };
}

/** What is confidential in a round to another target; undefined where nothing is. */
function resealing(db: DatabaseSync, keyring: Keyring) {
  const select = db.prepare('SELECT key_id, sealed FROM contents WHERE id = ?');
  return (id: number, runId: string, { authorization }: OtherTarget): Sealed | 'unreadable' | undefined => {
    const { key_id: keyId, sealed } = select.get(id) as { key_id: string | null; sealed: Uint8Array | null };
    const own = keyId === null || sealed === null ? {} : unseal({ keyId, sealed }, runId, keyring);
    if (own === undefined) return 'unreadable';
    const confidential = {
      ...(own.secret && { secret: own.secret }),
      ...(authorization !== undefined && { authorization }),
    };
    return seal(confidential, runId, keyring);
  };
}

export function redeliverHandler(makeRound: MakeRound, keys: LedgerKeys): Handlers['redeliver'] {
  return (args: Args<'redeliver'>, [fingerprint]) => {
    const { runId, projectId: project, at, to } = args;
    const asked = askedWith(args, fingerprint, at);
    const before = asked && keys.find(asked);
    if (before !== undefined) {
      return before !== 'conflict' && 'round' in before
        ? { outcome: 'repeated', round: before.round }
        : { outcome: 'conflict' };
    }
    const made = makeRound({ runId, project, at, to });
    if (asked && made.outcome === 'redelivered') keys.set(asked, { round: made.round });
    return made;
  };
}
