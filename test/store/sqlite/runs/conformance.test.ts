/** The embedded store passes the common suite of runs; what is SQLite's own is tested beside it. */
import { runsConformance } from '../../runs-conformance.ts';
import { openTestStore } from '../opening.ts';

runsConformance('SQLite', openTestStore);
