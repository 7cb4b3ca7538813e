/**
 * The statements that make very many deliveries, runs and attempts in the tables of an embedded store. Deliveries
 * are made of their ordinal, the rest of the deliveries.
 */
import { REASONS, RUN_STATES, STATES } from '../../src/store/codes.ts';
import { KEYS_PER_MS } from '../../src/store/sqlite/key.ts';
import type { DeliveryState, FailureReason } from '../../src/store/store.ts';

/** Names that only the oldest few have: what a filter by them looks for is far away. */
export const RARE = { app: 'rare', host: 'rare.example', deliveries: 3 } as const;

export const APPS = ['summarise', 'score', 'chat', 'speech', 'resize'] as const;

export const HOSTS = [
  'hooks.northwind.example',
  'api.tailspin.example',
  'events.fabrikam.example',
  'crm.contoso.example',
  'billing.lamna.example',
  'flows.proseware.example',
  'in.wingtip.example',
  'orders.litware.example',
  'notify.adatum.example',
  'jobs.trey.example',
  'sync.margie.example',
  'webhooks.relecloud.example',
] as const;

interface Fate {
  /** Of a thousand deliveries, those from the fate before to this number have it. */
  readonly below: number;
  readonly state: DeliveryState;
  readonly reason?: FailureReason;
  /** Of the receiver's answers. */
  readonly status?: number;
  readonly error?: string;
  readonly attempts: number;
}

export const FATES = {
  delivered: { below: 940, state: 'delivered', status: 200, attempts: 1 },
  noted: { below: 965, state: 'delivered', status: 204, attempts: 1 },
  broken: { below: 975, state: 'failed', reason: 'rejected', status: 500, attempts: 1 },
  unwanted: { below: 983, state: 'failed', reason: 'rejected', status: 422, attempts: 1 },
  missing: { below: 988, state: 'failed', reason: 'exhausted', status: 404, attempts: 3 },
  unreachable: {
    below: 993,
    state: 'failed',
    reason: 'exhausted',
    error: 'connection_refused',
    attempts: 3,
  },
  forbidden: { below: 995, state: 'failed', reason: 'blocked', error: 'blocked_target', attempts: 1 },
  stopped: { below: 1000, state: 'cancelled', status: 404, attempts: 1 },
} as const satisfies Record<string, Fate>;

const PENDING: Omit<Fate, 'below'> = { state: 'pending', status: 404, attempts: 1 };

/** The newest have trouble more often, and some of them have not ended. */
const RECENT = 200;
const PENDING_AMONG = 1_000;
const PENDING_EVERY = 10;
export const PENDING_COUNT = PENDING_AMONG / PENDING_EVERY;

/** Has nothing in common with the numbers of apps, hosts and fates. */
const SPREAD = 7919;

export function isPending(n: number, count: number): boolean {
  return n > count - PENDING_AMONG && n % PENDING_EVERY === 0;
}

export function fateOf(n: number, count: number): number {
  return n > count - RECENT ? 900 + ((n * SPREAD) % 100) : (n * SPREAD) % 1000;
}

/** A column of a delivery, by what becomes of it. */
function byFate(column: (fate: Omit<Fate, 'below'>) => number | undefined): string {
  const cases = Object.values<Fate>(FATES).map(
    fate => `WHEN fate < ${fate.below} THEN ${column(fate) ?? 'NULL'}`,
  );
  return `CASE WHEN waits THEN ${column(PENDING) ?? 'NULL'} ${cases.join(' ')} END`;
}

/** By a number, one name after the other. */
function oneOf(names: readonly string[], number: string): string {
  const cases = names.map((name, index) => `WHEN ${index} THEN '${name}'`);
  return `CASE ${number} % ${names.length} ${cases.join(' ')} END`;
}

const DELIVERIES = `
  INSERT INTO deliveries
    (id, project, app, host, state, reason, last_status, due_at, round, attempts, cause, settled_at)
  WITH RECURSIVE
    ordinals (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM ordinals WHERE n < :count),
    fates (n, ms, waits, fate) AS (
      SELECT n, :from + CAST(n * :gap AS INTEGER), n > :count - ${PENDING_AMONG} AND n % ${PENDING_EVERY} = 0,
        iif(n > :count - ${RECENT}, 900 + n * ${SPREAD} % 100, n * ${SPREAD} % 1000)
      FROM ordinals
    )
  SELECT :key + (ms - :from) * ${KEYS_PER_MS},
    iif(n % 10 < 7, :project, :other),
    iif(n <= ${RARE.deliveries}, '${RARE.app}', ${oneOf(APPS, 'n')}),
    CASE WHEN waits THEN :pendingHost WHEN n <= ${RARE.deliveries} THEN '${RARE.host}'
      ELSE ${oneOf(HOSTS, 'n / 3')} END,
    ${byFate(({ state }) => STATES.indexOf(state))},
    ${byFate(({ reason }) => reason && REASONS.indexOf(reason))},
    ${byFate(({ status }) => status)},
    ms + 20, 1, ${byFate(({ attempts }) => attempts)}, 0,
    iif(waits, NULL, ms + ${byFate(({ attempts }) => (attempts > 1 ? 5_400 : 120))})
  FROM fates`;

/** The millisecond of a key. There is one delivery in each, and all that is random in its run id is made of it. */
const MS = `(CAST(:from AS INTEGER) + (id - CAST(:key AS INTEGER)) / ${KEYS_PER_MS})`;
const [A, B, C] = [7919, 104_729, 1_299_709];
const RUN_ID_TEXT = `printf('%08x-%04x-7%03x-%04x-%012x', ${MS} >> 16, ${MS} & 65535, ${MS} * ${A} & 4095,
  ${MS} * ${B} & 16383 | 32768, ${MS} * ${C} & 281474976710655)`;
const RUN_ID = `unhex(replace(${RUN_ID_TEXT}, '-', ''))`;

export function runIdAt(ms: number): string {
  const part = (factor: number, bits: number) => BigInt.asUintN(bits, BigInt(ms) * BigInt(factor));
  const hex = (value: bigint | number, digits: number) => value.toString(16).padStart(digits, '0');
  const time = hex(ms, 12);
  const random = [`7${hex(part(A, 12), 3)}`, hex(part(B, 14) | 0x8000n, 4), hex(part(C, 48), 12)];
  return [time.slice(0, 8), time.slice(8), ...random].join('-');
}

const BODY = `CAST(printf('{"run_id":"%s","project_id":"%s","app":"%s","status_code":200,' ||
  '"result":{"label":"invoice","confidence":0.97,"pages":%d},"run_time_ms":12.5,"timestamp":"%s"}',
  ${RUN_ID_TEXT}, project, app, id % 97, strftime('%FT%H:%M:%fZ', ${MS} / 1000.0, 'unixepoch')) AS BLOB)`;

/** To seal a secret for each of them would take long: those have one that somebody will look at. */
const CONTENTS = `
  INSERT INTO contents (id, run_id, app, target, status, created_at, key_id, sealed, body)
  SELECT id, ${RUN_ID}, app, iif(state = 0, :pendingTarget, 'https://' || host || '/hook'), 200, ${MS} + 20,
    iif(state = 1, NULL, :keyId), iif(state = 1, NULL, sealed_for(${RUN_ID_TEXT})), ${BODY}
  FROM deliveries NOT INDEXED ORDER BY id`;

/** Second and third attempts come about one and four seconds after the one before. */
const ATTEMPTS = `
  INSERT INTO attempts (delivery, ordinal, round, number, cause, started_at, queue_ms, dns_ms, connect_ms, tls_ms,
    first_byte_ms, total_ms, status, error, headers, excerpt)
  SELECT id, number, 1, number, 0, ${MS} + CASE number WHEN 1 THEN 25 WHEN 2 THEN 1150 ELSE 5230 END,
    0.25 * number, iif(number = 1, 1.5, 0.4), 12 + number,
    iif(last_status IS NULL, NULL, 18), iif(last_status IS NULL, NULL, 20 + id % 50),
    iif(last_status IS NULL, 13.5 + number, 22.5 + id % 50), last_status,
    CASE WHEN last_status IS NOT NULL THEN NULL WHEN reason = ${REASONS.indexOf('blocked')}
      THEN '${FATES.forbidden.error}' ELSE '${FATES.unreachable.error}' END,
    iif(state = 2 AND last_status, 'Server: example' || char(10) || 'Content-Type: application/json', NULL),
    iif(state = 2 AND last_status, CAST('{"error":"there is no such hook","code":4711}' AS BLOB), NULL)
  FROM deliveries NOT INDEXED CROSS JOIN (SELECT 1 AS number UNION ALL SELECT 2 UNION ALL SELECT 3)
  WHERE number <= attempts ORDER BY id, number`;

/** As catalogue.ts leaves them behind: all but the newest are in order. */
const CATALOGUE = [
  'INSERT INTO delivery_apps SELECT project, app, id FROM deliveries WHERE id <= :mark ORDER BY project, app, id',
  'INSERT INTO delivery_hosts SELECT host, id FROM deliveries WHERE id <= :mark ORDER BY host, id',
  'UPDATE catalogue SET mark = :mark',
];

/** Of ten runs one has failed and one was cancelled. Half of them are those of a delivery. */
const RUNS = `
  INSERT INTO ended_runs (id, run_id, project, app, created_at, target, starts, started_at, state, status, error,
    ended_at, owner, claim, had_file, delivery, body)
  SELECT id, ${RUN_ID}, project, app, ${MS}, iif(delivered, 'https://' || host || '/hook', NULL), 1, ${MS} + 5,
    CASE ending WHEN 3 THEN ${RUN_STATES.indexOf('failed')} WHEN 7 THEN ${RUN_STATES.indexOf('cancelled')}
      ELSE ${RUN_STATES.indexOf('succeeded')} END,
    CASE ending WHEN 3 THEN 500 WHEN 7 THEN 499 ELSE 200 END,
    CASE ending WHEN 3 THEN 'ValueError' WHEN 7 THEN 'cancelled' END,
    ${MS} + 20, 1, 1, 0, iif(delivered, id, NULL), iif(delivered, NULL, ${BODY})
  FROM (
    SELECT *, place / :runEvery % 10 AS ending, place / :runEvery % 2 AS delivered
    FROM (SELECT *, row_number() OVER (ORDER BY id) AS place FROM deliveries NOT INDEXED WHERE state > 0)
    WHERE place % :runEvery = 0
  ) ORDER BY id`;

/** In this order. They need the function `sealed_for`, of a run id. */
export const FILL: readonly string[] = [DELIVERIES, CONTENTS, ATTEMPTS, ...CATALOGUE, RUNS];
