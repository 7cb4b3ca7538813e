/** The embedded store passes the common suite of what is counted. */
import { statsConformance } from '../stats-conformance.ts';
import { openTestStore } from './opening.ts';

statsConformance('SQLite', openTestStore);
