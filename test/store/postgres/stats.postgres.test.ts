/** The shared store's numbers pass the common suite. */
import { statsConformance } from '../stats-conformance.ts';
import { openStoreAt } from './opening.ts';

statsConformance('PostgreSQL', openStoreAt);
