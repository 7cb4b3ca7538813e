/**
 * The embedded store: one process, one directory, SQLite in a thread of its own.
 */
import type { Store } from '../store.ts';
import { createChanges } from './changes.ts';
import { createEmbedded, type EmbeddedOptions } from './embedded.ts';
import { createOperations, type Submit } from './operations.ts';
import { leftTo } from './work.ts';

export type SqliteStoreOptions = EmbeddedOptions;

/** One process has the directory to itself for as long as it has it: its tenure is always the same. */
const TENURE = 1;

export function createSqliteStore(options: SqliteStoreOptions): Store {
  const { clock, log } = options;
  const embedded = createEmbedded(options);
  const { spool } = embedded;
  const changes = createChanges({ submit: embedded.submit, clock });
  const listeners: (() => void)[] = [];

  function tell(): void {
    for (const listener of listeners) listener();
  }

  const submit: Submit = (kind, args, blobs) => {
    const result = changes.submit(kind, args, blobs);
    // Nobody else works on this store, and its tenure has no gaps: only what is done by hand is left to claim.
    if (leftTo({ kind, args }) === 'all') result.then(tell, () => {});
    return result;
  };
  const operations = createOperations({ submit, spool, clock, log });

  return {
    ...operations,
    ledger: { ...operations.ledger, follow: async listener => changes.follow(listener) },
    open: () => embedded.open(),
    close: () => embedded.close(),
    get available() {
      return embedded.available;
    },
    get tenure() {
      return embedded.serving ? TENURE : undefined;
    },
    watch: listener => void listeners.push(listener),
  };
}
