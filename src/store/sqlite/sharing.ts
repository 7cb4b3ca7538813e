/**
 * The embedded store for several processes: this one has the directory, the others send it their operations,
 * which go into the same group commits. What the two say to each other is here too; the other side is in
 * remote.ts.
 */
import type { Port } from '../../port.ts';
import type { Share, SharedStore, StorePort } from '../store-port.ts';
import { createEmbedded, type EmbeddedOptions } from './embedded.ts';
import { createOperations, freeAll } from './operations.ts';
import { type Kind, type Operation, type Outcome, type PackedBatch, unpack } from './protocol.ts';

export type FromRemote =
  | { readonly type: 'enter'; readonly name: string }
  | { readonly type: 'operations'; readonly id: number; readonly batch: PackedBatch };

export type ToRemote =
  | { readonly type: 'entered' }
  /** One for each operation, in their order. */
  | { readonly type: 'outcomes'; readonly id: number; readonly outcomes: readonly Outcome[] }
  | { readonly type: 'available'; readonly available: boolean }
  /** Another node may have left deliveries or runs to claim, or runs of this one to be cancelled. */
  | { readonly type: 'claimable' };

type RemotePort = Port<ToRemote, FromRemote>;

export function createSharedSqliteStore(options: EmbeddedOptions): SharedStore {
  const { clock, log } = options;
  const ports = new Set<RemotePort>();
  const embedded = createEmbedded(options, () => ports.forEach(tellAvailable));
  const { submit, spool } = embedded;
  const { recover, prune, runs } = createOperations({ submit, spool, clock, log });

  function tellAvailable(port: RemotePort): void {
    port.send({ type: 'available', available: embedded.available });
  }

  function tellOthers(than: RemotePort): void {
    for (const port of ports) if (port !== than) port.send({ type: 'claimable' });
  }

  function share(port: RemotePort): Share {
    let owner: Promise<number> | undefined;
    let gone = false;

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
      if (operations.some(leavesWork)) tellOthers(port);
    }

    port.listen(message => {
      // The promises reject only where the store is closed, and then nobody waits for them.
      const heard = message.type === 'enter' ? enter(message.name) : run(message.id, message.batch);
      heard.catch(error => log.debug({ err: error as Error }, 'a message came after the store was closed'));
    });

    return {
      async end() {
        gone = true;
        ports.delete(port);
        const node = await owner;
        if (node === undefined) return 0;
        const freed = await freeAll(clock, args => submit('release', args, [], node));
        tellOthers(port);
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
    runs,
    share: port => share(port as StorePort & RemotePort),
  };
}

function settled(result: Promise<unknown>): Promise<Outcome> {
  return result.then(
    value => ({ value }),
    (error: Error) => ({ error: error.message }),
  );
}

/** What may leave something that nobody owns, mark a run that another node has, or make room for a run of its app. */
const LEAVES_WORK: ReadonlySet<Kind> = new Set([
  'release',
  'insertRun',
  'withdrawRun',
  'cancelRun',
  'endRun',
]);

/** Whether it may leave work for another node. */
function leavesWork({ kind, args }: Operation): boolean {
  return LEAVES_WORK.has(kind) || (kind === 'insert' && 'owned' in args && !args.owned);
}
