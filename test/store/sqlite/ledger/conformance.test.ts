/** The embedded store passes the common suite of the ledger; what is SQLite's own is tested beside it. */
import { ledgerConformance } from '../../ledger-conformance.ts';
import { openTestStore } from '../opening.ts';

ledgerConformance('SQLite', openTestStore);
