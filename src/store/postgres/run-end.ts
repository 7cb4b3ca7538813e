/**
 * Ends runs, a batch in one statement, each only while this node holds it: it leaves the queue, its end is
 * written, and where it has a webhook, its delivery is inserted. The end says who wrote it: so after a lost
 * answer, an end of this node's is told from one of a node that took the run over.
 */
import { RUN_STATES } from '../codes.ts';
import type { RunEnd, RunRef } from '../runs.ts';
import { createBlobs } from './blobs.ts';
import type { Statement } from './connection.ts';
import { type Columns, givenRows } from './given.ts';
import {
  DELIVERIES,
  GIVEN,
  GIVEN_PARAMETERS,
  givenValues,
  type Insertion,
  type InsertOptions,
  leavesUnowned,
  QUEUED,
  sizeOfInsertion,
} from './insert.ts';
import { HELD, HOLD, holdValues, type RunHold, runRefOf } from './run-hold.ts';

export interface RunEnding extends RunHold {
  /** Times are by the database's clock. */
  readonly end: RunEnd;
  /** Its bytes, or the size of what was stored in parts; absent where the delivery has it. */
  readonly result?: Uint8Array | number;
  readonly delivery?: Insertion;
}

const ENDED: Columns = [
  ...HOLD,
  ['state', 'int'],
  ['status', 'int'],
  ['error', 'text'],
  ['ended_at', 'float8'],
  ['result_start', 'int'],
  ['result_length', 'int'],
  ['result_size', 'bigint'],
  ['place', 'int'], // of its delivery
];

/** The first parameters are those of inserted deliveries. */
const RESULTS = GIVEN_PARAMETERS + 1;
const END: Statement = {
  name: 'afterword_end_runs',
  text: `
    WITH given AS (${GIVEN}),
    ended AS (
      DELETE FROM afterword_run_queue q USING ${givenRows(ENDED, RESULTS + 1)}
      WHERE ${HELD} RETURNING g.*, q.project, q.app, q.starts, coalesce(q.begun_at, q.started_at) AS started_at
    ), finished AS (
      INSERT INTO afterword_run_ends (id, project, app, state, status, error, ended_at, starts, started_at,
        owner, claim, result_size, result)
      SELECT id, project, app, state, status, error, ended_at, starts, started_at, owner, claim, result_size,
        substring($${RESULTS}::bytea FROM result_start FOR result_length)
      FROM ended
    ), owed AS (
      SELECT given.* FROM ended JOIN given ON given.place = ended.place
    ), stored AS (${DELIVERIES('owed')}), queued AS (${QUEUED('owed')})
    SELECT id, owner, claim FROM ended`,
};

const WRITTEN: Statement = {
  text: `
    SELECT g.id, g.owner, g.claim FROM ${givenRows(HOLD, 1)} CROSS JOIN LATERAL (
      SELECT FROM afterword_run_ends WHERE id = g.id AND owner = g.owner AND claim = g.claim LIMIT 1
    ) e`,
};

/** Each result: whether it was written. */
export function runEndRunner({ database, owner, onUnowned }: InsertOptions) {
  async function written(endings: readonly RunEnding[]): Promise<RunRef[]> {
    return refs(await database.query<RunHold>(WRITTEN, holdValues(endings)));
  }

  async function end(endings: readonly RunEnding[]): Promise<RunRef[]> {
    const me = owner();
    const deliveries = endings.flatMap(({ delivery }) => delivery ?? []);
    const ended = refs(
      await database.query<RunHold>(END, [...givenValues(me, deliveries), ...values(endings)]),
    );
    if (leavesUnowned(me, deliveries)) onUnowned();
    return ended;
  }

  return async (endings: readonly RunEnding[], replay: boolean): Promise<readonly boolean[]> => {
    const done = new Set(replay ? await written(endings) : []);
    const open = endings.filter(ending => !done.has(runRefOf(ending)));
    if (open.length > 0) for (const ref of await end(open)) done.add(ref);
    return endings.map(ending => done.has(runRefOf(ending)));
  };
}

export function sizeOfRunEnding({ result, delivery }: RunEnding): number {
  const bytes = result === undefined || typeof result === 'number' ? 0 : result.byteLength;
  return bytes + (delivery ? sizeOfInsertion(delivery) : 0);
}

function values(endings: readonly RunEnding[]): unknown[] {
  const blobs = createBlobs();
  const ends = endings.map(({ end }) => end);
  const results = endings.map(({ result }) => blobs.add(typeof result === 'number' ? undefined : result));
  let deliveries = 0;
  return [
    blobs.joined(),
    ...holdValues(endings),
    ends.map(({ state }) => RUN_STATES.indexOf(state)),
    ends.map(({ statusCode }) => statusCode),
    ends.map(({ error }) => error),
    ends.map(({ endedAt }) => endedAt),
    results.map(({ start }) => start),
    results.map(({ length }) => length),
    endings.map(({ result }) => (typeof result === 'number' ? result : null)),
    endings.map(({ delivery }) => (delivery ? (deliveries += 1) : null)),
  ];
}

function refs({ rows }: { rows: readonly RunHold[] }): RunRef[] {
  return rows.map(runRefOf);
}
