/** The shared store passes the common suite; what is PostgreSQL's own is tested under postgres/. */
import { storeConformance } from './conformance.ts';
import { openStoreAt } from './postgres/opening.ts';

storeConformance('PostgreSQL', openStoreAt);
