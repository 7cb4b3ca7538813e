/** The embedded store passes the common suite; what is SQLite's own is tested under sqlite/. */
import { openTestStore } from './sqlite/opening.ts';
import { storeConformance } from './conformance.ts';

storeConformance('SQLite', openTestStore);
