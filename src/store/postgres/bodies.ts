/** Bodies of deliveries. Small ones lie in the delivery's row, large ones in parts. */
import type { Body } from '../store.ts';
import type { Database, Statement } from './connection.ts';
import { createLane } from './lane.ts';
import { type BodyRow, bodyOf, partsOf } from './parts.ts';
import type { Persistence } from './persistence.ts';

/** Bodies that are read together, and how many times at once. */
const READ_TOGETHER = 32;
const READS_AT_ONCE = 2;

const INSERT_PART: Statement = {
  name: 'afterword_insert_part',
  text: `
    INSERT INTO afterword_body_parts (id, part, bytes) VALUES ($1::uuid, $2::int, $3::bytea)
    ON CONFLICT DO NOTHING`,
};

const SELECT_BODIES: Statement = {
  text: `
    SELECT id, body_size::float8 AS size, body FROM afterword_deliveries WHERE id = ANY ($1::uuid[])`,
};

const SELECT_PART: Statement = {
  text: 'SELECT bytes FROM afterword_body_parts WHERE id = $1::uuid AND part = $2::int',
};

export interface Bodies {
  /** Durable when it resolves. */
  write(id: string, file: string, size: number): Promise<void>;
  read(id: string): Promise<Body | undefined>;
}

export interface BodyOptions {
  readonly database: Database;
  readonly persistence: Persistence;
}

interface DeliveryBodyRow extends BodyRow {
  readonly id: string;
}

export function createBodies({ database, persistence }: BodyOptions): Bodies {
  const reads = createLane<string, DeliveryBodyRow | undefined>({
    width: READS_AT_ONCE,
    length: READ_TOGETHER,
    sizeOf: () => 0,
    persistence,
    async run(ids) {
      const { rows } = await database.query<DeliveryBodyRow>(SELECT_BODIES, [ids]);
      const byId = new Map(rows.map(row => [row.id, row]));
      return ids.map(id => byId.get(id));
    },
  });

  async function readPart(id: string, number: number): Promise<Uint8Array | undefined> {
    const { rows } = await persistence.persist(() =>
      database.query<{ bytes: Uint8Array }>(SELECT_PART, [id, number]),
    );
    return rows[0]?.bytes;
  }

  return {
    async write(id, file, size) {
      for await (const { number, bytes } of partsOf(file, size)) {
        await persistence.persist(() => database.query(INSERT_PART, [id, number, bytes]));
      }
    },

    async read(id) {
      const row = await reads.submit(id);
      return row && bodyOf(row, number => readPart(id, number));
    },
  };
}
