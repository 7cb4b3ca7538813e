/**
 * A store that one process has open and others on the same machine use through it, each as a node of its own.
 */
import type { Port } from '../port.ts';
import type { Store } from './store.ts';

/** What is said over it is between the two ends of the one store. */
export type StorePort = Port<unknown, unknown>;

/** What this process does with it itself. */
type Own = 'open' | 'close' | 'available' | 'recover' | 'prune' | 'find' | 'runs' | 'ledger' | 'stats';

export interface SharedStore extends Pick<Store, Own> {
  /** Serves a process at the other end of a port. */
  share(port: StorePort): Share;
}

export interface Share {
  /**
   * The process is gone, and its last message has been heard: frees what it owned, for the others to claim;
   * tells how many.
   */
  end(): Promise<number>;
}
