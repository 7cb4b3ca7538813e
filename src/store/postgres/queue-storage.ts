/**
 * How a queue lies on disk: a table that is empty at one moment, has a million rows at the next, and changes all
 * the time.
 */

/** Changes leave indexed columns alone where they can: then the new version of a row fits beside the old one. */
export const QUEUE_STORAGE = `
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 20000,
    vacuum_truncate = off`;

/**
 * Pages that a queue keeps even when it is empty. A plan is made once for a connection, and for a table of a
 * few pages it would be to read all of it, which stays so when the table has grown by a million rows.
 */
const PAGES = 256;
/** Two rows with this much in them fill half a page, which is as far as pages of a queue are filled. */
const HALF_PAGE_TEXT = 1_800;

/** For FROM: rows of a `filler` that are inserted into a new queue, and deleted again, for their pages. */
export const FILLERS = `(
      SELECT repeat('x', ${HALF_PAGE_TEXT}) AS filler FROM generate_series(1, ${PAGES * 2})
    ) fillers`;
