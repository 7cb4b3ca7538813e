/** The shared store's ledger passes the common suite; what several nodes and lost answers make of it is beside. */
import { ledgerConformance } from '../ledger-conformance.ts';
import { openStoreAt } from './opening.ts';

ledgerConformance('PostgreSQL', openStoreAt);
