/**
 * Bodies. Small ones lie in the delivery's row. Large ones come as files of the spool; they are written in
 * parts, before the delivery that needs them, and read back a part at a time.
 */
import { open } from 'node:fs/promises';
import type { Body } from '../store.ts';
import type { Database, Statement } from './connection.ts';
import { createLane } from './lane.ts';
import type { Persistence } from './persistence.ts';

const PART_BYTES = 1024 * 1024;

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

interface BodyRow {
  readonly id: string;
  /** Of what is in parts. */
  readonly size: number | null;
  readonly body: Uint8Array | null;
}

export function createBodies({ database, persistence }: BodyOptions): Bodies {
  const reads = createLane<string, BodyRow | undefined>({
    width: READS_AT_ONCE,
    length: READ_TOGETHER,
    sizeOf: () => 0,
    persistence,
    async run(ids) {
      const { rows } = await database.query<BodyRow>(SELECT_BODIES, [ids]);
      const byId = new Map(rows.map(row => [row.id, row]));
      return ids.map(id => byId.get(id));
    },
  });

  /** Ends early where parts are missing. */
  async function* pieces(id: string, size: number): AsyncGenerator<Uint8Array> {
    for (let part = 0; part * PART_BYTES < size; part += 1) {
      const { rows } = await persistence.persist(() =>
        database.query<{ bytes: Uint8Array }>(SELECT_PART, [id, part]),
      );
      if (rows[0] === undefined) return;
      yield rows[0].bytes;
    }
  }

  return {
    async write(id, file, size) {
      await using handle = await open(file);
      const buffer = Buffer.allocUnsafe(Math.min(PART_BYTES, size));
      for (let part = 0, position = 0; position < size; part += 1) {
        const { bytesRead } = await handle.read(buffer, 0, Math.min(PART_BYTES, size - position), position);
        if (bytesRead < Math.min(PART_BYTES, size - position)) throw new RangeError(`${file} is too short`);
        await persistence.persist(() =>
          database.query(INSERT_PART, [id, part, buffer.subarray(0, bytesRead)]),
        );
        position += bytesRead;
      }
    },

    async read(id) {
      const row = await reads.submit(id);
      if (row === undefined) return undefined;
      const { size, body } = row;
      if (size === null) return { bytes: body! };
      return { size, pieces: () => pieces(id, size) };
    },
  };
}
