/**
 * Writes new runs, a batch in one statement: what came in, its place in the queue, and the key that its caller
 * chose. Of those with the same key only the first is stored, on whatever node: the key's row is made, or taken
 * anew where it is too old, in the same statement, and whoever comes at the same moment waits for it.
 */
import { type Keyring, type Sealed, seal, sealHeaders } from '../seal.ts';
import { IDEMPOTENCY_MS, type Idempotency, type NewRun, type RunInsertion } from '../runs.ts';
import { createBlobs } from './blobs.ts';
import type { Database, Statement } from './connection.ts';
import { sqlState, UNIQUE_VIOLATION } from './faults.ts';
import { inRow } from './parts.ts';
import type { Times } from './times.ts';

export interface NewRunRow
  extends Pick<NewRun, 'projectId' | 'app' | 'method' | 'path' | 'query' | 'idempotency'> {
  /** The run id. */
  readonly id: string;
  /** By the database's clock. */
  readonly createdAt: number;
  readonly headers: Sealed;
  readonly target?: string;
  /** What its webhook has that is confidential. */
  readonly sealed?: Sealed;
  /** Its bytes, or the size of what was stored in parts. */
  readonly body?: Uint8Array | number;
}

export interface RunInsertOptions {
  readonly database: Database;
  /** Runs were stored, and wait to be claimed. */
  readonly onUnowned: () => void;
}

/** The keys in order, so that two batches never wait for each other. */
const INSERT: Statement = {
  name: 'afterword_insert_runs',
  text: `
    WITH given AS (
      SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::float8[], $10::text[], $11::int[], $12::int[], $13::int[], $14::int[], $15::int[], $16::int[],
        $17::bigint[], $18::text[], $19::int[], $20::int[])
      AS g (id, project, app, method, path, query, target, created_at, key_id, headers_start, headers_length,
        sealed_start, sealed_length, body_start, body_length, body_size, key, print_start, print_length)
    ), taken AS (
      INSERT INTO afterword_run_keys AS k (project, key, id, fingerprint, made_at)
      SELECT project, key, id, substring($1::bytea FROM print_start FOR print_length), created_at
      FROM given WHERE key IS NOT NULL ORDER BY project, key
      ON CONFLICT (project, key) DO UPDATE
        SET id = excluded.id, fingerprint = excluded.fingerprint, made_at = excluded.made_at
        WHERE k.made_at <= extract(epoch FROM clock_timestamp()) * 1000 - ${IDEMPOTENCY_MS}
      RETURNING id
    ), fresh AS (
      SELECT * FROM given WHERE key IS NULL OR id IN (SELECT id FROM taken)
    ), stored AS (
      INSERT INTO afterword_runs (id, project, app, method, path, query, target, created_at, key_id, headers,
        sealed, body_size, body)
      SELECT id, project, app, method, path, query, target, created_at, key_id,
        substring($1::bytea FROM headers_start FOR headers_length),
        substring($1::bytea FROM sealed_start FOR sealed_length), body_size,
        substring($1::bytea FROM body_start FOR body_length)
      FROM fresh
    ), queued AS (
      INSERT INTO afterword_run_queue (id, project, app, key_id) SELECT id, project, app, key_id FROM fresh
    )
    SELECT id FROM fresh`,
};

const PRESENT: Statement = { text: 'SELECT id FROM afterword_runs WHERE id = ANY ($1::uuid[])' };

const HOLDERS: Statement = {
  text: `
    SELECT k.* FROM unnest($1::text[], $2::text[]) AS g (project, key) CROSS JOIN LATERAL (
      SELECT project, key, id, fingerprint FROM afterword_run_keys
      WHERE project = g.project AND key = g.key LIMIT 1
    ) k`,
};

interface HolderRow {
  readonly project: string;
  readonly key: string;
  readonly id: string;
  readonly fingerprint: Buffer;
}

const INSERTED: RunInsertion = { outcome: 'inserted' };

/** A body that is a file is in parts already. */
export function newRunRow(run: NewRun, keyring: Keyring, times: Times): NewRunRow {
  const { runId, projectId, app, method, path, query, createdAt, headers, webhook, body, idempotency } = run;
  const sealed = webhook && seal(webhook.confidential, runId, keyring);
  return {
    id: runId,
    projectId,
    app,
    method,
    path,
    createdAt: times.toDatabase(createdAt),
    headers: sealHeaders(headers, runId, keyring),
    ...(query !== undefined && { query }),
    ...(webhook && { target: webhook.target }),
    ...(sealed && { sealed }),
    ...(body && { body: inRow(body) }),
    ...(idempotency && { idempotency }),
  };
}

export function sizeOfRun({ headers, sealed, body }: NewRunRow): number {
  const bytes = body === undefined || typeof body === 'number' ? 0 : body.byteLength;
  return bytes + headers.sealed.byteLength + (sealed?.sealed.byteLength ?? 0);
}

export function runInsertRunner({ database, onUnowned }: RunInsertOptions) {
  /** Stores those that can be stored; tells their ids. */
  async function store(runs: readonly NewRunRow[]): Promise<ReadonlySet<string>> {
    const { rows } = await database.query<{ id: string }>(INSERT, values(runs));
    if (rows.length > 0) onUnowned();
    return new Set(rows.map(({ id }) => id));
  }

  /** Those whose key stands for a run, and what that makes of them. */
  async function repeated(runs: readonly NewRunRow[]): Promise<Map<string, RunInsertion>> {
    const keys = runs.map(run => run.idempotency!.key);
    const projects = runs.map(({ projectId }) => projectId);
    const { rows } = await database.query<HolderRow>(HOLDERS, [projects, keys]);
    const holders = new Map(rows.map(row => [nameOf(row.project, row.key), row]));
    return new Map(
      runs.flatMap(({ id, projectId, idempotency }) => {
        const holder = holders.get(nameOf(projectId, idempotency!.key));
        return holder === undefined ? [] : [[id, insertionBeside(holder, id, idempotency!)]];
      }),
    );
  }

  async function insert(runs: readonly NewRunRow[], done: Map<string, RunInsertion>): Promise<void> {
    for (let open = runs; open.length > 0; open = open.filter(({ id }) => !done.has(id))) {
      for (const id of await store(firstOfEachKey(open))) done.set(id, INSERTED);
      const rest = open.filter(({ id }) => !done.has(id));
      // A key can be gone by now, too old in this very moment; then once more.
      if (rest.length > 0) for (const [id, insertion] of await repeated(rest)) done.set(id, insertion);
    }
  }

  async function insertAbsent(runs: readonly NewRunRow[], done: Map<string, RunInsertion>): Promise<void> {
    const { rows } = await database.query<{ id: string }>(PRESENT, [runs.map(({ id }) => id)]);
    for (const { id } of rows) done.set(id, INSERTED);
    await insert(
      runs.filter(({ id }) => !done.has(id)),
      done,
    );
  }

  return async (runs: readonly NewRunRow[], replay: boolean): Promise<readonly RunInsertion[]> => {
    const done = new Map<string, RunInsertion>();
    if (replay) {
      await insertAbsent(runs, done);
    } else {
      await insert(runs, done).catch((error: unknown) => {
        if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
        return insertAbsent(runs, done);
      });
    }
    return runs.map(({ id }) => done.get(id)!);
  };
}

function nameOf(project: string, key: string): string {
  return JSON.stringify([project, key]);
}

/** A statement cannot take the same key twice; the others of a batch find it taken. */
function firstOfEachKey(runs: readonly NewRunRow[]): NewRunRow[] {
  const seen = new Set<string>();
  return runs.filter(({ projectId, idempotency }) => {
    if (idempotency === undefined) return true;
    const name = nameOf(projectId, idempotency.key);
    return seen.has(name) ? false : seen.add(name);
  });
}

function insertionBeside(holder: HolderRow, id: string, { fingerprint }: Idempotency): RunInsertion {
  if (holder.id === id) return INSERTED;
  return { outcome: holder.fingerprint.equals(fingerprint) ? 'repeated' : 'conflict', runId: holder.id };
}

function values(runs: readonly NewRunRow[]): unknown[] {
  const blobs = createBlobs();
  const headers = runs.map(run => blobs.add(run.headers.sealed));
  const sealed = runs.map(run => blobs.add(run.sealed?.sealed));
  const bodies = runs.map(({ body }) => blobs.add(typeof body === 'number' ? undefined : body));
  const prints = runs.map(({ idempotency }) => blobs.add(idempotency?.fingerprint));
  return [
    blobs.joined(),
    runs.map(({ id }) => id),
    runs.map(({ projectId }) => projectId),
    runs.map(({ app }) => app),
    runs.map(({ method }) => method),
    runs.map(({ path }) => path),
    runs.map(({ query }) => query),
    runs.map(({ target }) => target),
    runs.map(({ createdAt }) => createdAt),
    runs.map(run => run.headers.keyId),
    ...[headers, sealed, bodies].flatMap(spans => [
      spans.map(({ start }) => start),
      spans.map(({ length }) => length),
    ]),
    runs.map(({ body }) => (typeof body === 'number' ? body : null)),
    runs.map(({ idempotency }) => idempotency?.key),
    prints.map(({ start }) => start),
    prints.map(({ length }) => length),
  ];
}
