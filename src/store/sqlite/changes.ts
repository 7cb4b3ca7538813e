/**
 * Tells of deliveries that have changed. Every change of this store is an operation, so each is looked at on its
 * way back, while anybody listens; what has gathered is told a little later, all at once.
 */
import type { Clock } from '../../clock.ts';
import type { Args, Blobs, Kind, Result } from './protocol.ts';
import type { Queue } from './queue.ts';

const GATHER_MS = 100;

type Listener = (runIds: readonly string[]) => void;

/** Deliveries by their keys, or by their runs. */
interface Changed {
  readonly ids?: readonly number[];
  readonly runIds?: readonly string[];
}

export interface Changes {
  readonly submit: Queue['submit'];
  readonly follow: (listener: Listener) => () => void;
}

export interface ChangesOptions {
  readonly submit: Queue['submit'];
  readonly clock: Clock;
}

const NOTHING: Changed = {};

/** Operations that change what is told of deliveries. */
const CHANGED: { readonly [K in Kind]?: (args: Args<K>, result: Result<K>) => Changed } = {
  insert: ({ runId }) => ({ runIds: [runId] }),
  endAttempt: ({ id }, ended) => (ended ? { ids: [id] } : NOTHING),
  claim: (_args, { unreadable }) => ({ runIds: unreadable }),
  recover: (_args, { interrupted }) => ({ ids: interrupted }),
  release: (_args, { interrupted }) => ({ ids: interrupted }),
  endRun: ({ delivery }, ended) => (delivery && ended ? { runIds: [delivery.runId] } : NOTHING),
  redeliver: ({ runId }, { outcome }) => (outcome === 'redelivered' ? { runIds: [runId] } : NOTHING),
  cancelDelivery: ({ runId }, outcome) => (outcome === 'cancelled' ? { runIds: [runId] } : NOTHING),
  stepJob: ({ runIds }, job) => (job ? { runIds } : NOTHING),
};

export function createChanges({ submit, clock }: ChangesOptions): Changes {
  const listeners = new Set<Listener>();
  let ids = new Set<number>();
  let runIds = new Set<string>();

  function note({ ids: keys = [], runIds: runs = [] }: Changed): void {
    if (keys.length + runs.length === 0) return;
    if (ids.size + runIds.size === 0) clock.after(GATHER_MS, () => void tell());
    for (const id of keys) ids.add(id);
    for (const runId of runs) runIds.add(runId);
  }

  async function tell(): Promise<void> {
    const [keys, changed] = [[...ids], runIds];
    ids = new Set();
    runIds = new Set();
    if (listeners.size === 0) return;
    // It is rejected only where the store has been closed.
    const found = keys.length === 0 ? [] : await submit('runsOf', { ids: keys }).catch(() => []);
    const all = [...new Set([...changed, ...found])];
    for (const listener of listeners) listener(all);
  }

  return {
    submit<K extends Kind>(kind: K, args: Args<K>, ...rest: [blobs?: Blobs, owner?: number]) {
      const result = submit(kind, args, ...rest);
      const changed = listeners.size === 0 ? undefined : CHANGED[kind];
      if (changed === undefined) return result;
      return result.then(value => {
        note(changed(args, value));
        return value;
      });
    },
    follow(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
