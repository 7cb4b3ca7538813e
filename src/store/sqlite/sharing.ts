/**
 * The embedded store for several processes: this one has the directory, the others send it their operations,
 * which go into the same group commits. What the two say to each other is here too; the other side is in
 * remote.ts.
 */
import type { Port } from '../../port.ts';
import type { Share, SharedStore, StorePort } from '../store-port.ts';
import { createChanges } from './changes.ts';
import { createEmbedded, type EmbeddedOptions } from './embedded.ts';
import { createOperations, freeAll } from './operations.ts';
import {
  type Args,
  type Blobs,
  type Kind,
  type Outcome,
  type PackedBatch,
  type Result,
  unpack,
} from './protocol.ts';
import { leftTo } from './work.ts';

export type FromRemote =
  | { readonly type: 'enter'; readonly name: string }
  /** Whether anybody there listens to what changes. */
  | { readonly type: 'follow'; readonly following: boolean }
  | { readonly type: 'operations'; readonly id: number; readonly batch: PackedBatch };

export type ToRemote =
  | { readonly type: 'entered' }
  /** One for each operation, in their order. */
  | { readonly type: 'outcomes'; readonly id: number; readonly outcomes: readonly Outcome[] }
  | { readonly type: 'available'; readonly available: boolean }
  /** Another node may have left deliveries, runs or jobs to claim, or runs of this one to be cancelled. */
  | { readonly type: 'claimable' }
  /** Deliveries of these runs have changed. */
  | { readonly type: 'changed'; readonly runIds: readonly string[] };

type RemotePort = Port<ToRemote, FromRemote>;

export function createSharedSqliteStore(options: EmbeddedOptions): SharedStore {
  const { clock, log } = options;
  const ports = new Set<RemotePort>();
  const embedded = createEmbedded(options, () => ports.forEach(tellAvailable));
  const { spool } = embedded;
  const { submit, follow } = createChanges({ submit: embedded.submit, clock });
  const { recover, prune, find, runs, ledger, stats } = createOperations({ submit: ask, spool, clock, log });

  /** What this process itself asks for may be work for any of the others. */
  function ask<K extends Kind>(kind: K, args: Args<K>, blobs?: Blobs): Promise<Result<K>> {
    const result = submit(kind, args, blobs);
    if (leftTo({ kind, args }) !== 'nobody') result.then(() => tellClaimable()).catch(() => {});
    return result;
  }

  function tellAvailable(port: RemotePort): void {
    port.send({ type: 'available', available: embedded.available });
  }

  function tellClaimable(except?: RemotePort): void {
    for (const port of ports) if (port !== except) port.send({ type: 'claimable' });
  }

  function share(port: RemotePort): Share {
    let owner: Promise<number> | undefined;
    let gone = false;
    let unfollow: (() => void) | undefined;

    async function enter(name: string): Promise<void> {
      owner = submit('register', { name });
      await owner;
      if (gone) return;
      ports.add(port);
      tellAvailable(port);
      port.send({ type: 'entered' });
    }

    async function run(id: number, batch: PackedBatch): Promise<void> {
      const node = await owner;
      const operations = unpack(batch);
      const outcomes = await Promise.all(
        operations.map(({ kind, args, blobs }) => settled(submit(kind, args, blobs, node))),
      );
      port.send({ type: 'outcomes', id, outcomes });
      const left = new Set(operations.map(leftTo));
      if (left.has('all')) tellClaimable();
      else if (left.has('others')) tellClaimable(port);
    }

    function followAs(following: boolean): void {
      unfollow?.();
      unfollow = following && !gone ? follow(runIds => port.send({ type: 'changed', runIds })) : undefined;
    }

    port.listen(message => {
      if (message.type === 'follow') {
        followAs(message.following);
        return;
      }
      // The promises reject only where the store is closed, and then nobody waits for them.
      const heard = message.type === 'enter' ? enter(message.name) : run(message.id, message.batch);
      heard.catch(error => log.debug({ err: error as Error }, 'a message came after the store was closed'));
    });

    return {
      async end() {
        gone = true;
        followAs(false);
        ports.delete(port);
        const node = await owner;
        if (node === undefined) return 0;
        const freed = await freeAll(clock, args => submit('release', args, [], node));
        tellClaimable();
        return freed;
      },
    };
  }

  return {
    open: () => embedded.open(),
    close: () => embedded.close(),
    get available() {
      return embedded.available;
    },
    recover,
    prune,
    find,
    runs,
    ledger: { ...ledger, follow: async listener => follow(listener) },
    stats,
    share: port => share(port as StorePort & RemotePort),
  };
}

function settled(result: Promise<unknown>): Promise<Outcome> {
  return result.then(
    value => ({ value }),
    (error: Error) => ({ error: error.message }),
  );
}
