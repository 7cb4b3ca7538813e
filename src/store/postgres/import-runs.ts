/**
 * Writes a batch of runs of another store, all of them waiting or all of them ended, or of the keys that stand for
 * runs. It takes several statements, and belongs in one transaction.
 */
import type { Client } from 'pg';
import { RUN_STATES } from '../codes.ts';
import { IDEMPOTENCY_MS } from '../runs.ts';
import type { StoredEndedRun, StoredKey, StoredWaitingRun } from '../stored.ts';
import { createBlobs } from './blobs.ts';
import { type Batch, type Imported, writeFiles } from './import-batch.ts';
import { partsOf } from './parts.ts';
import { REQUEST, RESULT } from './run-bodies.ts';

/** The other store has forgotten the request of a run that has ended; nobody asks for it. */
const NO_REQUEST = { method: '', path: '', headers: { keyId: '', sealed: new Uint8Array() } } as const;
/** No node of this database has ended it. */
const NOBODY = { owner: 0, claim: 0 } as const;

type NewRuns = Batch<Omit<StoredWaitingRun, 'cancelled'>>;

export async function importWaitingRuns(batch: Batch<StoredWaitingRun>): Promise<Imported> {
  const { client, stored } = batch;
  const inserted = await insertRuns(batch);
  const fresh = stored.filter(({ runId }) => inserted.has(runId));
  await insertQueued({ ...batch, stored: fresh });
  const bodiesMissing = await writeFiles(fresh, partsWriter(client, REQUEST));
  return { present: stored.length - fresh.length, bodiesMissing };
}

export async function importEndedRuns(batch: Batch<StoredEndedRun>): Promise<Imported> {
  const { client, stored } = batch;
  const inserted = await insertRuns({ ...batch, stored: stored.map(run => ({ ...run, ...NO_REQUEST })) });
  const fresh = stored.filter(({ runId }) => inserted.has(runId));
  await insertEnds({ ...batch, stored: fresh });
  const results = fresh.map(({ runId, result }) => ({ runId, ...(result && { body: result }) }));
  const bodiesMissing = await writeFiles(results, partsWriter(client, RESULT));
  return { present: stored.length - fresh.length, bodiesMissing };
}

/** One that nodes here were given meanwhile stays theirs, unless its day is over. */
export async function importKeys({ client, stored, times }: Batch<StoredKey>): Promise<Imported> {
  const blobs = createBlobs();
  const prints = stored.map(({ fingerprint }) => blobs.add(fingerprint));
  const { rowCount } = await client.query(
    `INSERT INTO afterword_run_keys AS k (project, key, id, made_at, fingerprint)
     SELECT project, key, id, made_at, substring($1::bytea FROM start FOR length)
     FROM unnest($2::text[], $3::text[], $4::uuid[], $5::float8[], $6::int[], $7::int[])
       AS given (project, key, id, made_at, start, length)
     ORDER BY project, key
     ON CONFLICT (project, key) DO UPDATE
       SET id = excluded.id, fingerprint = excluded.fingerprint, made_at = excluded.made_at
       WHERE k.made_at <= extract(epoch FROM clock_timestamp()) * 1000 - ${IDEMPOTENCY_MS}`,
    [
      blobs.joined(),
      stored.map(({ projectId }) => projectId),
      stored.map(({ key }) => key),
      stored.map(({ runId }) => runId),
      stored.map(({ madeAt }) => times.toDatabase(madeAt)),
      prints.map(({ start }) => start),
      prints.map(({ length }) => length),
    ],
  );
  return { present: stored.length - rowCount!, bodiesMissing: 0 };
}

/** The run ids that were new. */
async function insertRuns({ client, stored, times }: NewRuns): Promise<ReadonlySet<string>> {
  const blobs = createBlobs();
  const spans = [
    stored.map(({ headers }) => blobs.add(headers.sealed)),
    stored.map(({ sealed }) => blobs.add(sealed?.sealed)),
    stored.map(({ body }) => blobs.add(body && 'bytes' in body ? body.bytes : undefined)),
  ];
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO afterword_runs
       (id, project, app, method, path, query, target, created_at, key_id, body_size, headers, sealed, body)
     SELECT id, project, app, method, path, query, target, created_at, key_id, body_size,
       substring($1::bytea FROM headers_start FOR headers_length),
       substring($1::bytea FROM sealed_start FOR sealed_length),
       substring($1::bytea FROM body_start FOR body_length)
     FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
       $9::float8[], $10::text[], $11::bigint[], $12::int[], $13::int[], $14::int[], $15::int[], $16::int[],
       $17::int[])
       AS given (id, project, app, method, path, query, target, created_at, key_id, body_size, headers_start,
         headers_length, sealed_start, sealed_length, body_start, body_length)
     ON CONFLICT DO NOTHING RETURNING id`,
    [
      blobs.joined(),
      stored.map(({ runId }) => runId),
      stored.map(({ projectId }) => projectId),
      stored.map(({ app }) => app),
      stored.map(({ method }) => method),
      stored.map(({ path }) => path),
      stored.map(({ query }) => query),
      stored.map(({ target }) => target),
      stored.map(({ createdAt }) => times.toDatabase(createdAt)),
      stored.map(({ headers }) => headers.keyId),
      stored.map(({ body }) => (body && 'file' in body ? body.size : undefined)),
      ...spans.flatMap(each => [each.map(({ start }) => start), each.map(({ length }) => length)]),
    ],
  );
  return new Set(rows.map(({ id }) => id));
}

async function insertQueued({ client, stored, times }: Batch<StoredWaitingRun>): Promise<void> {
  await client.query(
    `INSERT INTO afterword_run_queue (id, project, app, starts, started_at, cancelled, key_id)
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::float8[], $6::bool[], $7::text[])`,
    [
      stored.map(({ runId }) => runId),
      stored.map(({ projectId }) => projectId),
      stored.map(({ app }) => app),
      stored.map(({ starts }) => starts),
      stored.map(({ startedAt }) => (startedAt === undefined ? undefined : times.toDatabase(startedAt))),
      stored.map(({ cancelled }) => cancelled),
      stored.map(({ headers }) => headers.keyId),
    ],
  );
}

async function insertEnds({ client, stored, times }: Batch<StoredEndedRun>): Promise<void> {
  const blobs = createBlobs();
  const results = stored.map(({ result }) =>
    blobs.add(result && 'bytes' in result ? result.bytes : undefined),
  );
  await client.query(
    `INSERT INTO afterword_run_ends (id, project, app, state, status, error, ended_at, starts, started_at,
       result_size, owner, claim, result)
     SELECT id, project, app, state, status, error, ended_at, starts, started_at, result_size,
       ${NOBODY.owner}, ${NOBODY.claim}, substring($1::bytea FROM start FOR length)
     FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int[], $6::int[], $7::text[], $8::float8[],
       $9::int[], $10::float8[], $11::bigint[], $12::int[], $13::int[])
       AS given (id, project, app, state, status, error, ended_at, starts, started_at, result_size, start,
         length)`,
    [
      blobs.joined(),
      stored.map(({ runId }) => runId),
      stored.map(({ projectId }) => projectId),
      stored.map(({ app }) => app),
      stored.map(({ state }) => RUN_STATES.indexOf(state)),
      stored.map(({ statusCode }) => statusCode),
      stored.map(({ error }) => error),
      stored.map(({ endedAt }) => times.toDatabase(endedAt)),
      stored.map(({ starts }) => starts),
      stored.map(({ startedAt }) => (startedAt === undefined ? undefined : times.toDatabase(startedAt))),
      stored.map(({ result }) => (result && 'file' in result ? result.size : undefined)),
      results.map(({ start }) => start),
      results.map(({ length }) => length),
    ],
  );
}

function partsWriter(client: Client, side: number) {
  return async (id: string, file: string, size: number): Promise<void> => {
    for await (const { number, bytes } of partsOf(file, size)) {
      await client.query(
        `INSERT INTO afterword_run_parts (id, side, part, bytes)
         VALUES ($1::uuid, $2::int, $3::int, $4::bytea) ON CONFLICT DO NOTHING`,
        [id, side, number, bytes],
      );
    }
  };
}
