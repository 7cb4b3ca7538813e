/**
 * The embedded store as a process has it that does not have the directory: what one turn of the event loop
 * wants goes to the process that does in one message. That one makes the commits, and keeps what cannot be
 * written until it can.
 */
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import type { StorePort } from '../store-port.ts';
import type { Store } from '../store.ts';
import { createOperations, type Submit } from './operations.ts';
import { type Operation, type Outcome, pack } from './protocol.ts';
import type { FromRemote, ToRemote } from './sharing.ts';
import { createSpool } from './spool.ts';

export interface RemoteStoreOptions {
  readonly port: StorePort;
  readonly spoolDir: string;
  /** A name that no other process has had. */
  readonly nodeId: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether the process that has the store is there at this moment. */
  readonly connected: () => boolean;
}

interface Entry {
  readonly operation: Operation;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

const TENURE = 1;
/** How long a close waits for what has not been written yet; the other process goes on with it. */
const CLOSE_MS = 5_000;

export function createRemoteStore(options: RemoteStoreOptions): Store {
  const { spoolDir, nodeId, clock, log, connected } = options;
  const port = options.port as StorePort & { send(message: FromRemote): void };
  const entered = Promise.withResolvers<void>();
  const emptied = Promise.withResolvers<void>();
  const waiting = new Map<number, readonly Entry[]>();
  const listeners: (() => void)[] = [];
  const followers = new Set<(runIds: readonly string[]) => void>();
  let phase: 'new' | 'open' | 'closing' = 'new';
  let available = false;
  let gathered: Entry[] = [];
  let last = 0;

  const submit: Submit = (kind, args, blobs = []) => {
    if (phase !== 'open') return Promise.reject(new Error('the store is not open'));
    return new Promise((resolve, reject) => {
      if (gathered.length === 0) setImmediate(flush);
      gathered.push({ operation: { kind, args, blobs }, resolve, reject });
    });
  };

  function flush(): void {
    last += 1;
    waiting.set(last, gathered);
    port.send({
      type: 'operations',
      id: last,
      batch: pack(
        gathered.map(each => each.operation),
        false,
      ),
    });
    gathered = [];
  }

  function settle(id: number, outcomes: readonly Outcome[]): void {
    const entries = waiting.get(id)!;
    waiting.delete(id);
    for (const [index, { resolve, reject }] of entries.entries()) {
      const outcome = outcomes[index]!;
      if ('error' in outcome) reject(new Error(outcome.error));
      else resolve(outcome.value as never);
    }
    if (isEmpty()) emptied.resolve();
  }

  const isEmpty = (): boolean => phase === 'closing' && waiting.size === 0 && gathered.length === 0;

  function hear(message: ToRemote): void {
    if (message.type === 'outcomes') settle(message.id, message.outcomes);
    else if (message.type === 'available') ({ available } = message);
    else if (message.type === 'entered') entered.resolve();
    else if (message.type === 'changed') for (const follower of followers) follower(message.runIds);
    else for (const listener of listeners) listener();
  }

  async function close(): Promise<void> {
    if (phase === 'open') phase = 'closing';
    if (phase === 'new' || isEmpty()) return;
    const cancel = clock.after(CLOSE_MS, () => {
      log.warn('the store closes before everything is known to be written');
      emptied.resolve();
    });
    await emptied.promise;
    cancel();
  }

  async function follow(follower: (runIds: readonly string[]) => void): Promise<() => void> {
    if (followers.size === 0) port.send({ type: 'follow', following: true });
    followers.add(follower);
    const end = (): void => {
      if (followers.delete(follower) && followers.size === 0) port.send({ type: 'follow', following: false });
    };
    try {
      await submit('runsOf', { ids: [] }); // by its answer, the other process knows
      return end;
    } catch (error) {
      end();
      throw error;
    }
  }

  const operations = createOperations({ submit, spool: createSpool(spoolDir), clock, log });
  return {
    ...operations,
    ledger: { ...operations.ledger, follow },
    async open() {
      port.listen(message => hear(message as ToRemote));
      port.send({ type: 'enter', name: nodeId });
      await entered.promise;
      phase = 'open';
    },
    close,
    get available() {
      return phase === 'open' && available;
    },
    get tenure() {
      return phase === 'open' && connected() ? TENURE : undefined;
    },
    /** The process that has the directory has done so, and does so again whenever one of the others ends. */
    recover: () => Promise.resolve(0),
    watch: listener => void listeners.push(listener),
  };
}
