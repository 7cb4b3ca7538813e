/**
 * The API does what its document says: every route at both of its places comes to every status that is told of
 * it, with a body as it is described and with nothing else. A status that nothing here comes to fails the suite.
 */
import { type RouteConfig, z } from '@hono/zod-openapi';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/api/document.ts';
import { type MountName, MOUNTS, pathOf, ROUTES, type RouteName } from '../../src/api/mounts.ts';
import { attempt, newDelivery, newRun } from '../store/samples.ts';
import { until } from '../support/waiting.ts';
import { ADMIN_TOKEN, type Asked, KEYLESS, type Listeners, openListeners, OTHER, OWN } from './listeners.ts';

interface Place {
  readonly mount: MountName;
  readonly name: RouteName;
  readonly route: RouteConfig;
  readonly operation: string;
}

const places: readonly Place[] = (Object.keys(MOUNTS) as MountName[]).flatMap(mount =>
  (Object.keys(ROUTES) as RouteName[]).flatMap(name =>
    ROUTES[name].map(route => {
      const operation = `${route.method.toUpperCase()} ${pathOf(mount, name, route)}`;
      return { mount, name, route, operation };
    }),
  ),
);

/** What a request is, besides its route and its token. */
type Request = Partial<Omit<Asked, 'mount' | 'name' | 'path' | 'method'>>;

/** Brings about what the request needs, and gives it. */
type Case = (listeners: Listeners) => Promise<Request>;

const PLAIN: Case = async () => ({ id: uuidv7() });
const query =
  (text: string): Case =>
  async () => ({ id: uuidv7(), query: text });

async function failed({ store }: Listeners): Promise<string> {
  const delivery = newDelivery({ projectId: OWN, begunAt: Date.now(), confidential: SECRET });
  const result = attempt(1, { error: 'connection_refused' });
  await store.endAttempt(await store.insert(delivery), result, { state: 'failed', reason: 'exhausted' });
  return delivery.runId;
}

async function pending({ store }: Listeners): Promise<string> {
  const delivery = newDelivery({ projectId: OWN });
  await store.insert(delivery);
  return delivery.runId;
}

async function queuedRun({ store }: Listeners): Promise<string> {
  const run = newRun({ projectId: OWN });
  await store.runs.insert(run);
  return run.runId;
}

async function endedRun(listeners: Listeners): Promise<string> {
  const runId = await queuedRun(listeners);
  const { runs } = listeners.store;
  const claimed = await runs.claim([{ projectId: OWN, app: 'hello', limit: 1_000, each: false }]);
  const { ref } = claimed.find(each => each.runId === runId)!;
  await runs.begin(ref, Date.now());
  const bytes = Buffer.from(`{"run_id":"${runId}","project_id":"${OWN}","app":"hello","status_code":200}`);
  await runs.end(ref, { state: 'succeeded', endedAt: Date.now(), statusCode: 200 }, { result: { bytes } });
  return runId;
}

async function job({ store }: Listeners): Promise<string> {
  const id = uuidv7();
  await store.ledger.addJob({
    id,
    projectId: OWN,
    filter: { projectId: OWN },
    createdAt: Date.now(),
    total: 0,
  });
  return id;
}

const SECRET = { secret: Buffer.from('a secret') };
const LONG = JSON.stringify({ target: 'x'.repeat(70_000) });
const FILTER = JSON.stringify({ filter: { state: 'failed' } });
/** A key that nothing else has. */
const keyed = (body: string, key: string) => ({ body, headers: { 'Idempotency-Key': key } });

/** Statuses that are of one route; each by one case or more. */
const CASES: Readonly<Record<string, Readonly<Record<number, readonly Case[]>>>> = {
  listDeliveries: {
    200: [
      async listeners => {
        await failed(listeners);
        await pending(listeners);
        return { query: '?limit=1&since=1h' };
      },
    ],
    400: [query('?limit=0')],
  },
  getDelivery: {
    200: [
      async listeners => ({ id: await failed(listeners) }),
      async listeners => ({ id: await failed(listeners), query: '?exclude=body' }),
      async listeners => ({ id: await pending(listeners) }),
    ],
    400: [query('?exclude=all')],
    404: [PLAIN, async () => ({ id: 'x' })],
  },
  redeliver: {
    202: [async listeners => ({ id: await failed(listeners) })],
    400: [
      async () => ({ id: uuidv7(), body: '[]' }),
      async () => ({ id: uuidv7(), body: '{"target":"http://127.0.0.1/"}' }),
    ],
    404: [PLAIN],
    409: [async listeners => ({ id: await pending(listeners) })],
    413: [async () => ({ id: uuidv7(), body: LONG })],
    422: [
      async listeners => {
        const runId = await failed(listeners);
        const idempotency = { key: runId, fingerprint: Buffer.alloc(32) };
        await listeners.store.ledger.redeliver({ runId, projectId: OWN, at: Date.now(), idempotency });
        await listeners.store.ledger.cancel(runId, Date.now());
        return { id: runId, ...keyed('{}', runId) };
      },
    ],
    500: [
      async listeners => {
        listeners.faults.ledger.redeliver = async () => ({ outcome: 'unreadable' });
        return { id: await failed(listeners) };
      },
    ],
    503: [
      async listeners => {
        const id = await failed(listeners);
        listeners.faults.unavailable = true;
        return { id };
      },
    ],
  },
  cancelDelivery: {
    200: [async listeners => ({ id: await pending(listeners) })],
    404: [PLAIN],
    409: [async listeners => ({ id: await failed(listeners) })],
    503: [
      async listeners => {
        const id = await pending(listeners);
        listeners.faults.unavailable = true;
        return { id };
      },
    ],
  },
  redeliverMany: {
    200: [async () => ({ body: JSON.stringify({ filter: { state: 'failed' }, dryRun: true }) })],
    202: [async () => ({ body: FILTER })],
    400: [async () => ({ body: '{"filter":{}}' }), async () => ({ body: '{' })],
    413: [async () => ({ body: LONG })],
    422: [
      async listeners => {
        const idempotency = { key: uuidv7(), fingerprint: Buffer.alloc(32) };
        const of = { filter: {}, createdAt: Date.now(), total: 0, idempotency };
        await listeners.store.ledger.addJob({ id: uuidv7(), projectId: OWN, ...of });
        await listeners.store.ledger.addJob({ id: uuidv7(), ...of });
        return keyed(FILTER, idempotency.key);
      },
    ],
    503: [
      async listeners => {
        listeners.faults.unavailable = true;
        return { body: FILTER };
      },
    ],
  },
  getRedeliveryJob: { 200: [async listeners => ({ id: await job(listeners) })], 404: [PLAIN] },
  streamDeliveries: { 200: [PLAIN], 400: [query('?limit=1')] },
  listRuns: {
    200: [
      async listeners => {
        await endedRun(listeners);
        return { query: '?limit=1' };
      },
    ],
    400: [query('?state=x')],
  },
  getRun: {
    200: [
      async listeners => ({ id: await queuedRun(listeners) }),
      async listeners => ({ id: await endedRun(listeners) }),
    ],
    400: [query('?wait=x')],
    404: [PLAIN],
  },
  cancelRun: {
    200: [
      async listeners => {
        const id = await queuedRun(listeners);
        const { runs } = listeners.store;
        await runs.cancel(OWN, id);
        const all = await runs.claim([{ projectId: OWN, app: 'hello', limit: 1_000, each: false }]);
        const claimed = all.find(({ runId }) => runId === id);
        const bytes = Buffer.from(`{"run_id":"${id}","project_id":"${OWN}","app":"hello","status_code":499}`);
        const end = { state: 'cancelled', endedAt: Date.now(), statusCode: 499 } as const;
        await runs.end(claimed!.ref, end, { result: { bytes } });
        return { id };
      },
    ],
    404: [PLAIN],
    409: [async listeners => ({ id: await endedRun(listeners) })],
  },
  getStats: { 200: [PLAIN], 400: [query('?window=2h')] },
  listApps: { 200: [PLAIN], 400: [query('?app=x')] },
};

/** Statuses that every route can come to. On the admin listener no path names a project: there it is the page. */
const always = ({ mount, name }: Place): Readonly<Record<number, readonly Case[]>> => ({
  401: [async () => ({ id: uuidv7(), authorization: 'Bearer x' })],
  403: [
    mount === 'project'
      ? async () => ({ id: uuidv7(), project: OTHER, authorization: await listeners.tokenOf(OWN) })
      : async () => ({ id: uuidv7(), headers: { Origin: 'https://elsewhere.example' } }),
  ],
  500: [
    async listeners => {
      listeners.faults.broken = true;
      return { id: uuidv7(), ...(name === 'deliveries/redeliver' && { body: FILTER }) };
    },
  ],
  503: [async () => ({ project: KEYLESS, id: uuidv7(), authorization: await listeners.tokenOf(KEYLESS) })],
});

let listeners: Listeners;
beforeAll(async () => {
  listeners = await openListeners();
});
afterAll(() => listeners.close());

const reached = new Map<string, Set<number>>();

async function bodyOf(answer: Response): Promise<unknown> {
  const type = answer.headers.get('content-type')!;
  if (type !== 'text/event-stream') return await answer.json();
  const reader = answer.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

/** A schema that is no more than what it describes gives back all that it is given. */
function check({ route }: Place, answer: Response, body: unknown): void {
  const described = route.responses[answer.status];
  expect(described, `${answer.status} is described`).toBeDefined();
  const content = (described as { content: Record<string, { schema: z.ZodType }> }).content;
  const schema = content[answer.headers.get('content-type')!]?.schema;
  expect(schema, 'its media type is described').toBeDefined();
  expect(schema!.parse(body)).toEqual(body);
}

async function ask(place: Place, request: Request): Promise<Response> {
  const { mount, name, route } = place;
  const method = route.method.toUpperCase();
  const token = mount === 'admin' ? `Bearer ${ADMIN_TOKEN}` : await listeners.tokenOf(OWN);
  const { body, ...rest } = request;
  const sent = method === 'POST' && body !== undefined ? { body } : {};
  return listeners.ask({ mount, name, method, path: route.path, authorization: token, ...rest, ...sent });
}

describe.each(places)('$operation', place => {
  const own = CASES[place.route.operationId!] ?? {};
  const common = always(place);
  const statuses = [...new Set([...Object.keys(own), ...Object.keys(common)].map(Number))];
  const cases = statuses.flatMap(status =>
    [...(own[status] ?? []), ...(common[status] ?? [])].map((each, index) => ({ status, index, each })),
  );

  it.each(cases)('$status ($index)', async ({ status, each }) => {
    const { follow } = listeners.faults.ledger;
    Object.assign(listeners.faults, { broken: false, unavailable: false, ledger: { follow } });
    await until(() => !listeners.followed());
    const request = await each(listeners);
    const answer = await ask(place, request);
    const body = await bodyOf(answer);
    expect([answer.status, body]).toEqual([status, expect.anything()]);
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    // What the gateway refuses, nobody would keep.
    expect(answer.ok ? answer.headers.get('cache-control') : 'no-store').toBe('no-store');
    check(place, answer, body);
    const of = reached.get(place.operation) ?? new Set();
    reached.set(place.operation, of.add(answer.status));
  });
});

describe('the document', () => {
  it('is there', async () => {
    const answer = await listeners.ask({
      mount: 'admin',
      name: 'openapi.json' as RouteName,
      path: '/',
      method: 'GET',
      authorization: `Bearer ${ADMIN_TOKEN}`,
    });
    expect(await answer.text()).toBe(openApiDocument('0.0.0-test'));
    reached.set('GET /api/v1/openapi.json', new Set([answer.status]));
  });

  it('tells of nothing that nothing here came to, and came to nothing else', () => {
    const { paths } = JSON.parse(openApiDocument('x')) as {
      paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
    };
    const told = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { responses }]) =>
        Object.keys(responses).map(status => `${method.toUpperCase()} ${path} ${status}`),
      ),
    );
    const real = [...reached].flatMap(([operation, statuses]) =>
      [...statuses].map(status => `${operation} ${status}`),
    );
    expect(real.sort()).toEqual(told.sort());
  });
});
