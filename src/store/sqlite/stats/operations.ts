/** Turns the calls of the interface of numbers into operations of the database. */
import type { StatsStore } from '../../stats.ts';
import type { LedgerOperationsOptions } from '../ledger/operations.ts';

export function createStatsOperations({ submit, nextNumber }: LedgerOperationsOptions): StatsStore {
  return {
    add: (minutes, hosts) => submit('addCounts', { number: nextNumber(), minutes, hosts }),
    spans: window => submit('spans', window),
    failingHosts: (window, limit) => submit('failingHosts', { window, limit }),
    prune: before => submit('pruneCounts', { before }),
  };
}
