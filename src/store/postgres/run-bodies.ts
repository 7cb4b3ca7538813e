/**
 * Bodies of requests and results. Small ones lie in the row of the run or of its end, large ones in parts.
 *
 * The parts of a result, or of the delivery that has it, are written before the end. A node that lost the run
 * meanwhile may be at it still while another has begun to write its own. So each part is written only while the
 * run is held, in place of what may be there.
 */
import type { Body } from '../store.ts';
import type { Bodies } from './bodies.ts';
import type { Database, Statement } from './connection.ts';
import { type BodyRow, bodyOf, partsOf } from './parts.ts';
import type { Persistence } from './persistence.ts';
import type { RunHold } from './run-hold.ts';

/** The sides of a run that have parts. */
export const REQUEST = 0;
export const RESULT = 1;

const INSERT_REQUEST: Statement = {
  name: 'afterword_insert_request_part',
  text: `
    INSERT INTO afterword_run_parts (id, side, part, bytes) VALUES ($1::uuid, ${REQUEST}, $2::int, $3::bytea)
    ON CONFLICT DO NOTHING`,
};

const REMOVE_REQUEST: Statement = {
  text: `DELETE FROM afterword_run_parts WHERE id = $1::uuid AND side = ${REQUEST}`,
};

/** The lock keeps the run from being freed in the same moment. */
const HELD = `
  SELECT id FROM afterword_run_queue WHERE id = $1::uuid AND owner = $2::int AND claim = $3::int FOR SHARE`;

const INSERT_RESULT: Statement = {
  name: 'afterword_insert_result_part',
  text: `
    INSERT INTO afterword_run_parts (id, side, part, bytes)
    SELECT id, ${RESULT}, $4::int, $5::bytea FROM (${HELD}) held
    ON CONFLICT (id, side, part) DO UPDATE SET bytes = excluded.bytes`,
};

const INSERT_DELIVERED: Statement = {
  name: 'afterword_insert_delivered_part',
  text: `
    INSERT INTO afterword_body_parts (id, part, bytes)
    SELECT id, $4::int, $5::bytea FROM (${HELD}) held
    ON CONFLICT (id, part) DO UPDATE SET bytes = excluded.bytes`,
};

const SELECT_REQUEST: Statement = {
  text: `
    SELECT r.body_size::float8 AS size, r.body
    FROM afterword_runs r JOIN afterword_run_queue q ON q.id = r.id WHERE r.id = $1::uuid`,
};

const SELECT_RESULT: Statement = {
  text: `
    SELECT result_size::float8 AS size, result AS body FROM afterword_run_ends
    WHERE id = $1::uuid AND project = $2::text`,
};

const SELECT_PART: Statement = {
  text: 'SELECT bytes FROM afterword_run_parts WHERE id = $1::uuid AND side = $2::int AND part = $3::int',
};

export interface RunBodies {
  /** Durable when it resolves. */
  writeRequest(id: string, file: string, size: number): Promise<void>;
  /** The request did not become a run. */
  removeRequest(id: string): Promise<void>;
  /** Of a run that has not ended. */
  readRequest(id: string): Promise<Body | undefined>;
  /** Durable when it resolves. False: the run is no longer held. */
  writeResult(hold: RunHold, file: string, size: number): Promise<boolean>;
  /** As `writeResult`, for the delivery that has the result. */
  writeDelivered(hold: RunHold, file: string, size: number): Promise<boolean>;
  readResult(projectId: string, id: string): Promise<Body | undefined>;
}

export interface RunBodyOptions {
  readonly database: Database;
  readonly persistence: Persistence;
  /** Of deliveries. */
  readonly bodies: Bodies;
}

export function createRunBodies({ database, persistence, bodies }: RunBodyOptions): RunBodies {
  const reader = (id: string, side: number) => async (number: number) => {
    const { rows } = await persistence.persist(() =>
      database.query<{ bytes: Uint8Array }>(SELECT_PART, [id, side, number]),
    );
    return rows[0]?.bytes;
  };

  const writer =
    (statement: Statement) =>
    async ({ id, owner, claim }: RunHold, file: string, size: number) => {
      for await (const { number, bytes } of partsOf(file, size)) {
        const values = [id, owner, claim, number, bytes];
        const { rowCount } = await persistence.persist(() => database.query(statement, values));
        if (rowCount === 0) return false;
      }
      return true;
    };

  return {
    async writeRequest(id, file, size) {
      for await (const { number, bytes } of partsOf(file, size)) {
        await persistence.persist(() => database.query(INSERT_REQUEST, [id, number, bytes]));
      }
    },

    async removeRequest(id) {
      await persistence.persist(() => database.query(REMOVE_REQUEST, [id]));
    },

    async readRequest(id) {
      const { rows } = await persistence.persist(() => database.query<BodyRow>(SELECT_REQUEST, [id]));
      return rows[0] && bodyOf(rows[0], reader(id, REQUEST));
    },

    writeResult: writer(INSERT_RESULT),
    writeDelivered: writer(INSERT_DELIVERED),

    async readResult(projectId, id) {
      const { rows } = await persistence.persist(() =>
        database.query<BodyRow>(SELECT_RESULT, [id, projectId]),
      );
      return rows[0] && (bodyOf(rows[0], reader(id, RESULT)) ?? bodies.read(id));
    },
  };
}
