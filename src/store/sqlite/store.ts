/**
 * The embedded store: one process, one directory, SQLite in a thread of its own.
 */
import type { Store } from '../store.ts';
import { createEmbedded, type EmbeddedOptions } from './embedded.ts';
import { createOperations } from './operations.ts';

export type SqliteStoreOptions = EmbeddedOptions;

/** One process has the directory to itself for as long as it has it: its tenure is always the same. */
const TENURE = 1;

export function createSqliteStore(options: SqliteStoreOptions): Store {
  const { clock, log } = options;
  const embedded = createEmbedded(options);
  const { submit, spool } = embedded;
  return {
    ...createOperations({ submit, spool, clock, log }),
    open: () => embedded.open(),
    close: () => embedded.close(),
    get available() {
      return embedded.available;
    },
    get tenure() {
      return embedded.serving ? TENURE : undefined;
    },
    // Nobody else works on this store, and its tenure has no gaps.
    watch: () => {},
  };
}
