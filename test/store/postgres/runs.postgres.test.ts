/** The shared store's runs pass the common suite; what several nodes and lost answers make of them is beside. */
import { runsConformance } from '../runs-conformance.ts';
import { openStoreAt } from './opening.ts';

runsConformance('PostgreSQL', openStoreAt);
