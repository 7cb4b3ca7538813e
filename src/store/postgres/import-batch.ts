/**
 * Writes a batch of deliveries of another store: all of them pending, or all of them settled. It takes several
 * statements, and belongs in one transaction.
 */
import type { Client } from 'pg';
import { REASONS, STATES, TRIGGERS } from '../codes.ts';
import type { StoredDelivery } from '../stored.ts';
import { createBlobs } from './blobs.ts';
import { type Bodies, createBodies } from './bodies.ts';
import { databaseOn } from './connection.ts';
import type { Persistence } from './persistence.ts';
import type { Times } from './times.ts';

/** A transaction cannot be carried through a fault. */
const ONCE: Persistence = { persist: work => work(false), stop: () => {} };

export interface Imported {
  /** Left as they are here, since the runs were known already. */
  readonly present: number;
  /** Bodies whose file is missing or too short. */
  readonly bodiesMissing: number;
}

export interface ImportBatch {
  readonly client: Client;
  readonly deliveries: readonly StoredDelivery[];
  /** Of the machine that the other store is on. */
  readonly times: Times;
}

export async function importBatch(batch: ImportBatch): Promise<Imported> {
  const { client, deliveries } = batch;
  const inserted = await insertDeliveries(batch);
  const fresh = deliveries.filter(({ runId }) => inserted.has(runId));
  await insertAttempts({ ...batch, deliveries: fresh });
  await insertPending({ ...batch, deliveries: fresh.filter(({ state }) => state === 'pending') });
  await insertSettled({ ...batch, deliveries: fresh.filter(({ state }) => state !== 'pending') });
  const bodies = createBodies({ database: databaseOn(client), persistence: ONCE });
  let bodiesMissing = 0;
  for (const delivery of fresh) if (!(await insertParts(bodies, delivery))) bodiesMissing += 1;
  return { present: deliveries.length - fresh.length, bodiesMissing };
}

/** The run ids that were new. */
async function insertDeliveries({ client, deliveries, times }: ImportBatch): Promise<ReadonlySet<string>> {
  const blobs = createBlobs();
  const sealed = deliveries.map(delivery => blobs.add(delivery.sealed?.sealed));
  const bodies = deliveries.map(({ body }) => blobs.add('bytes' in body ? body.bytes : undefined));
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO afterword_deliveries
       (id, project, app, target, status, created_at, key_id, body_size, sealed, body)
     SELECT id, project, app, target, status, created_at, key_id, body_size,
       substring($1::bytea FROM sealed_start FOR sealed_length),
       substring($1::bytea FROM body_start FOR body_length)
     FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::int[], $7::float8[], $8::text[],
       $9::bigint[], $10::int[], $11::int[], $12::int[], $13::int[])
       AS given (id, project, app, target, status, created_at, key_id, body_size, sealed_start, sealed_length,
         body_start, body_length)
     ON CONFLICT DO NOTHING RETURNING id`,
    [
      blobs.joined(),
      deliveries.map(({ runId }) => runId),
      deliveries.map(({ projectId }) => projectId),
      deliveries.map(({ app }) => app),
      deliveries.map(({ target }) => target),
      deliveries.map(({ statusCode }) => statusCode),
      deliveries.map(({ createdAt }) => times.toDatabase(createdAt)),
      deliveries.map(delivery => delivery.sealed?.keyId),
      deliveries.map(({ body }) => ('file' in body ? body.size : undefined)),
      sealed.map(({ start }) => start),
      sealed.map(({ length }) => length),
      bodies.map(({ start }) => start),
      bodies.map(({ length }) => length),
    ],
  );
  return new Set(rows.map(({ id }) => id));
}

async function insertPending({ client, deliveries, times }: ImportBatch): Promise<void> {
  await client.query(
    `INSERT INTO afterword_queue (id, project, round, attempts, cause, due_at, key_id)
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[], $4::int[], $5::int[], $6::float8[], $7::text[])`,
    [
      deliveries.map(({ runId }) => runId),
      deliveries.map(({ projectId }) => projectId),
      deliveries.map(({ round }) => round),
      deliveries.map(({ counted }) => counted),
      deliveries.map(({ trigger }) => TRIGGERS.indexOf(trigger)),
      deliveries.map(({ dueAt }) => times.toDatabase(dueAt!)),
      deliveries.map(({ sealed }) => sealed?.keyId),
    ],
  );
}

async function insertSettled({ client, deliveries, times }: ImportBatch): Promise<void> {
  await client.query(
    `INSERT INTO afterword_settled (id, state, reason, round, settled_at)
     SELECT * FROM unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::float8[])`,
    [
      deliveries.map(({ runId }) => runId),
      deliveries.map(({ state }) => STATES.indexOf(state)),
      deliveries.map(({ reason }) => (reason === undefined ? undefined : REASONS.indexOf(reason))),
      deliveries.map(({ round }) => round),
      deliveries.map(({ settledAt }) => times.toDatabase(settledAt!)),
    ],
  );
}

async function insertAttempts({ client, deliveries, times }: ImportBatch): Promise<void> {
  const blobs = createBlobs();
  const rows = deliveries.flatMap(({ runId, attempts }) =>
    attempts.map(attempt => ({ runId, ...attempt, span: blobs.add(attempt.excerpt) })),
  );
  await client.query(
    `INSERT INTO afterword_attempts
       (id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms,
        status, error, excerpt)
     SELECT id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
       total_ms, status, error, substring($1::bytea FROM start FOR length)
     FROM unnest($2::uuid[], $3::int[], $4::int[], $5::int[], $6::float8[], $7::float8[], $8::float8[],
       $9::float8[], $10::float8[], $11::float8[], $12::float8[], $13::int[], $14::text[], $15::int[],
       $16::int[])
       AS given (id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
         total_ms, status, error, start, length)
     ON CONFLICT DO NOTHING`,
    [
      blobs.joined(),
      rows.map(({ runId }) => runId),
      rows.map(({ round }) => round),
      rows.map(({ number }) => number),
      rows.map(({ trigger }) => TRIGGERS.indexOf(trigger)),
      rows.map(({ startedAt }) => times.toDatabase(startedAt)),
      rows.map(({ timings }) => timings.queueMs),
      rows.map(({ timings }) => timings.dnsMs),
      rows.map(({ timings }) => timings.connectMs),
      rows.map(({ timings }) => timings.tlsMs),
      rows.map(({ timings }) => timings.firstByteMs),
      rows.map(({ timings }) => timings.totalMs),
      rows.map(({ status }) => status),
      rows.map(({ error }) => error),
      rows.map(({ span }) => span.start),
      rows.map(({ span }) => span.length),
    ],
  );
}

/** False where the file has less than it should, or is gone; the delivery's attempts will find that out. */
async function insertParts(bodies: Bodies, { runId, body }: StoredDelivery): Promise<boolean> {
  if (!('file' in body)) return true;
  try {
    await bodies.write(runId, body.file, body.size);
    return true;
  } catch (error) {
    if (error instanceof RangeError || (error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
