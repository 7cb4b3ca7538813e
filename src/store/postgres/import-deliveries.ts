/**
 * Writes a batch of deliveries of another store: all of them pending, or all of them settled. It takes several
 * statements, and belongs in one transaction.
 */
import { REASONS, STATES, TRIGGERS } from '../codes.ts';
import { hostOf } from '../ledger.ts';
import type { StoredDelivery } from '../stored.ts';
import { createBlobs } from './blobs.ts';
import { createBodies } from './bodies.ts';
import { databaseOn } from './connection.ts';
import { type Batch, type Imported, writeFiles } from './import-batch.ts';
import type { Persistence } from './persistence.ts';

/** A transaction cannot be carried through a fault. */
const ONCE: Persistence = { persist: work => work(false), stop: () => {} };

type Deliveries = Batch<StoredDelivery>;

export async function importDeliveries(batch: Deliveries): Promise<Imported> {
  const { client, stored } = batch;
  const inserted = await insertDeliveries(batch);
  const fresh = stored.filter(({ runId }) => inserted.has(runId));
  await insertAttempts({ ...batch, stored: fresh });
  await insertPending({ ...batch, stored: fresh.filter(({ state }) => state === 'pending') });
  await insertSettled({ ...batch, stored: fresh.filter(({ state }) => state !== 'pending') });
  const bodies = createBodies({ database: databaseOn(client), persistence: ONCE });
  const bodiesMissing = await writeFiles(fresh, (id, file, size) => bodies.write(id, file, size));
  return { present: stored.length - fresh.length, bodiesMissing };
}

/** The run ids that were new. */
async function insertDeliveries({ client, stored, times }: Deliveries): Promise<ReadonlySet<string>> {
  const blobs = createBlobs();
  const sealed = stored.map(delivery => blobs.add(delivery.sealed?.sealed));
  const bodies = stored.map(({ body }) => blobs.add('bytes' in body ? body.bytes : undefined));
  const { rows } = await client.query<{ id: string }>(
    `INSERT INTO afterword_deliveries
       (id, project, app, target, host, status, created_at, traceparent, key_id, body_size, sealed, body)
     SELECT id, project, app, target, host, status, created_at, traceparent, key_id, body_size,
       substring($1::bytea FROM sealed_start FOR sealed_length),
       substring($1::bytea FROM body_start FOR body_length)
     FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::int[], $7::float8[], $8::text[],
       $9::bigint[], $10::int[], $11::int[], $12::int[], $13::int[], $14::text[], $15::text[])
       AS given (id, project, app, target, status, created_at, key_id, body_size, sealed_start, sealed_length,
         body_start, body_length, host, traceparent)
     ON CONFLICT DO NOTHING RETURNING id`,
    [
      blobs.joined(),
      stored.map(({ runId }) => runId),
      stored.map(({ projectId }) => projectId),
      stored.map(({ app }) => app),
      stored.map(({ target }) => target),
      stored.map(({ statusCode }) => statusCode),
      stored.map(({ createdAt }) => times.toDatabase(createdAt)),
      stored.map(delivery => delivery.sealed?.keyId),
      stored.map(({ body }) => ('file' in body ? body.size : undefined)),
      sealed.map(({ start }) => start),
      sealed.map(({ length }) => length),
      bodies.map(({ start }) => start),
      bodies.map(({ length }) => length),
      stored.map(({ target }) => hostOf(target)),
      stored.map(({ traceparent }) => traceparent),
    ],
  );
  return new Set(rows.map(({ id }) => id));
}

async function insertPending({ client, stored, times }: Deliveries): Promise<void> {
  const blobs = createBlobs();
  const others = stored.map(({ otherSealed }) => blobs.add(otherSealed?.sealed));
  await client.query(
    `INSERT INTO afterword_queue
       (id, project, round, attempts, cause, due_at, key_id, app, host, created_at, last_status, other_target,
        other_sealed)
     SELECT id, project, round, attempts, cause, due_at, key_id, app, host, created_at, last_status,
       other_target, substring($1::bytea FROM sealed_start FOR sealed_length)
     FROM unnest($2::uuid[], $3::text[], $4::int[], $5::int[], $6::int[], $7::float8[], $8::text[],
       $9::text[], $10::text[], $11::float8[], $12::int[], $13::text[], $14::int[], $15::int[])
       AS given (id, project, round, attempts, cause, due_at, key_id, app, host, created_at, last_status,
         other_target, sealed_start, sealed_length)`,
    [
      blobs.joined(),
      stored.map(({ runId }) => runId),
      stored.map(({ projectId }) => projectId),
      stored.map(({ round }) => round),
      stored.map(({ counted }) => counted),
      stored.map(({ trigger }) => TRIGGERS.indexOf(trigger)),
      stored.map(({ dueAt }) => times.toDatabase(dueAt!)),
      stored.map(({ otherTarget, otherSealed, sealed }) =>
        otherTarget === undefined ? sealed?.keyId : otherSealed?.keyId,
      ),
      stored.map(({ app }) => app),
      stored.map(({ target }) => hostOf(target)),
      stored.map(({ createdAt }) => times.toDatabase(createdAt)),
      stored.map(({ attempts }) => attempts.at(-1)?.status),
      stored.map(({ otherTarget }) => otherTarget),
      others.map(({ start }) => start),
      others.map(({ length }) => length),
    ],
  );
}

async function insertSettled({ client, stored, times }: Deliveries): Promise<void> {
  await client.query(
    `INSERT INTO afterword_settled
       (id, state, reason, round, settled_at, project, app, host, last_status, other_target)
     SELECT * FROM unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::float8[], $6::text[], $7::text[],
       $8::text[], $9::int[], $10::text[])`,
    [
      stored.map(({ runId }) => runId),
      stored.map(({ state }) => STATES.indexOf(state)),
      stored.map(({ reason }) => (reason === undefined ? undefined : REASONS.indexOf(reason))),
      stored.map(({ round }) => round),
      stored.map(({ settledAt }) => times.toDatabase(settledAt!)),
      stored.map(({ projectId }) => projectId),
      stored.map(({ app }) => app),
      stored.map(({ target }) => hostOf(target)),
      stored.map(({ attempts }) => attempts.at(-1)?.status),
      stored.map(({ otherTarget }) => otherTarget),
    ],
  );
}

async function insertAttempts({ client, stored, times }: Deliveries): Promise<void> {
  const blobs = createBlobs();
  const rows = stored.flatMap(({ runId, attempts }) =>
    attempts.map(attempt => ({ runId, ...attempt, span: blobs.add(attempt.excerpt) })),
  );
  await client.query(
    `INSERT INTO afterword_attempts
       (id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms,
        status, error, target, headers, excerpt)
     SELECT id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
       total_ms, status, error, target, headers, substring($1::bytea FROM start FOR length)
     FROM unnest($2::uuid[], $3::int[], $4::int[], $5::int[], $6::float8[], $7::float8[], $8::float8[],
       $9::float8[], $10::float8[], $11::float8[], $12::float8[], $13::int[], $14::text[], $15::int[],
       $16::int[], $17::text[], $18::text[])
       AS given (id, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
         total_ms, status, error, start, length, target, headers)
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
      rows.map(({ target }) => target),
      rows.map(({ headers }) => headers),
    ],
  );
}
