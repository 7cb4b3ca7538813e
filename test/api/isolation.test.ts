/**
 * What belongs to one project is nobody else's: every route of the table, on both listeners, with the token of
 * another project, and with none.
 */
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ProblemBody } from '../../src/api/problems.ts';
import { MOUNTS, type MountName, ROUTES, type RouteName } from '../../src/api/mounts.ts';
import { attempt, newDelivery, newRun } from '../store/samples.ts';
import { ADMIN_TOKEN, type Asked, type Listeners, openListeners, OTHER, OWN } from './listeners.ts';

interface Route {
  readonly mount: MountName;
  readonly name: RouteName;
  readonly method: string;
  readonly path: string;
}

/** Each route at each of its places: one that is added to the table is here too. */
const routes: readonly Route[] = (Object.keys(MOUNTS) as MountName[]).flatMap(mount =>
  (Object.keys(ROUTES) as RouteName[]).flatMap(name =>
    ROUTES[name].map(({ method, path }) => ({ mount, name, method: method.toUpperCase(), path })),
  ),
);

/** What would tell that there is something of the other project's. */
const CANARY = 'canary';

interface Foreign {
  readonly deliveries: readonly string[];
  readonly run: string;
  readonly job: string;
}

/** Something of everything, of the other project. */
async function fill({ store }: Listeners, projectId: string): Promise<Foreign> {
  const body = { bytes: Buffer.from(`{"result":"${CANARY}"}`) };
  const target = `https://${CANARY}.example/hook`;
  const delivery = () => newDelivery({ projectId, target, body, begunAt: Date.now() });
  const [failed, pending] = [delivery(), delivery()];
  const ref = await store.insert(failed);
  const result = attempt(1, { status: 500, excerpt: Buffer.from(CANARY) });
  await store.endAttempt(ref, result, { state: 'failed', reason: 'rejected' });
  await store.insert(pending);
  const run = newRun({ projectId, path: `/${CANARY}`, webhook: { target, confidential: {} } });
  await store.runs.insert(run);
  const now = Date.now();
  const job = { id: uuidv7(), projectId, filter: { projectId }, createdAt: now, total: 1 };
  await store.ledger.addJob(job);
  const numbers = { calls: 77_777, callErrors: 0, made: 0, delivered: 0, failed: 0 };
  const firstAttempts = Array.from({ length: 37 }, () => 0);
  await store.stats.add(
    [{ projectId, minute: Math.floor(now / 60_000) * 60_000, ...numbers, firstAttempts }],
    [
      {
        projectId,
        host: `${CANARY}.example`,
        hour: Math.floor(now / 3_600_000) * 3_600_000,
        attempts: 9,
        failures: 9,
      },
    ],
  );
  return { deliveries: [failed.runId, pending.runId], run: run.runId, job: job.id };
}

function idsFor({ name }: Route, { deliveries, run, job }: Foreign): readonly string[] {
  if (name === 'runs') return [run];
  return name === 'deliveries/redeliver' ? [job] : deliveries;
}

function bodyFor({ name, method, path }: Route): Pick<Asked, 'body'> {
  return method === 'POST' && name === 'deliveries/redeliver' && path === '/'
    ? { body: JSON.stringify({ filter: { state: 'failed' }, dryRun: true }) }
    : {};
}

/** All that comes, or, of what has no end, what comes soon. */
async function textOf(answer: Response, { name }: Route): Promise<string> {
  if (name !== 'deliveries/stream' || answer.status !== 200) return answer.text();
  const reader = answer.body!.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

async function stateOf({ store }: Listeners, { deliveries, run }: Foreign): Promise<unknown> {
  return [await Promise.all(deliveries.map(runId => store.find(runId))), await store.runs.find(OTHER, run)];
}

let listeners: Listeners;
let foreign: Foreign;
beforeAll(async () => {
  listeners = await openListeners();
  foreign = await fill(listeners, OTHER);
});
afterAll(() => listeners.close());

const named = ({ path }: Route): boolean => path.includes('{');

it.each(routes)('$method $mount $name $path tells and does nothing of another project', async route => {
  const before = await stateOf(listeners, foreign);
  const authorization = await listeners.tokenOf(OWN);
  for (const id of named(route) ? idsFor(route, foreign) : ['']) {
    const answer = await listeners.ask({ ...route, id, authorization, ...bodyFor(route) });
    const text = await textOf(answer, route);
    expect(answer.status).toBe(named(route) ? 404 : 200);
    expect(text.includes('_not_found')).toBe(named(route));
    expect(text).not.toContain(CANARY);
    expect(text).not.toContain(OTHER);
    expect(text).not.toMatch(/\b77777\b|"matching":[1-9]|"pending":[1-9]/);
  }
  expect(await stateOf(listeners, foreign)).toEqual(before);
});

it.each(routes.filter(named))('$method $mount $name $path knows no foreign id from nobody’s', async route => {
  const authorization = await listeners.tokenOf(OWN);
  const answers: unknown[] = [];
  for (const id of [idsFor(route, foreign)[0]!, uuidv7()]) {
    const answer = await listeners.ask({ ...route, id, authorization });
    const { run_id: _, ...problem } = ProblemBody.strict().parse(await answer.json());
    answers.push(problem);
  }
  expect(answers[0]).toEqual(answers[1]);
});

it.each(routes.filter(({ mount }) => mount === 'project'))(
  '$method $name $path is not there below the path of another project',
  async route => {
    const authorization = await listeners.tokenOf(OWN);
    const id = idsFor(route, foreign)[0]!;
    const answer = await listeners.ask({ ...route, project: OTHER, id, authorization, ...bodyFor(route) });
    expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'wrong_project' }]);
  },
);

it.each(routes.filter(({ method, path }) => method === 'GET' && path === '/'))(
  '$method $mount $name cannot be asked for another project by its query',
  async route => {
    const authorization = await listeners.tokenOf(OWN);
    const answer = await listeners.ask({ ...route, authorization, query: `?project=${OTHER}` });
    expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'wrong_project' }]);
  },
);

it.each(routes)('$method $mount $name $path wants a good token', async route => {
  const forged = (await listeners.tokenOf(OTHER)).slice(0, -2);
  const strangers = [undefined, 'Bearer x', `Basic ${ADMIN_TOKEN}`, `Bearer ${ADMIN_TOKEN}x`, forged];
  if (route.mount === 'project') strangers.push(`Bearer ${ADMIN_TOKEN}`);
  for (const authorization of strangers) {
    const id = idsFor(route, foreign)[0]!;
    const answer = await listeners.ask({ ...route, project: OTHER, id, authorization, ...bodyFor(route) });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm=/);
    expect(await answer.text()).not.toContain(CANARY);
  }
});

it('is there for whoever may see it', async () => {
  const admin = `Bearer ${ADMIN_TOKEN}`;
  for (const route of routes.filter(({ method, name }) => method === 'GET' && name !== 'deliveries/stream')) {
    for (const authorization of [
      await listeners.tokenOf(OTHER),
      ...(route.mount === 'admin' ? [admin] : []),
    ]) {
      const id = idsFor(route, foreign)[0]!;
      const answer = await listeners.ask({ ...route, project: OTHER, id, authorization });
      expect(answer.status).toBe(200);
      expect(await answer.text()).toMatch(new RegExp(`${CANARY}|${OTHER}|"total":1`));
    }
  }
});

it('cannot be asked for another project by a filter in a body', async () => {
  const authorization = await listeners.tokenOf(OWN);
  for (const mount of Object.keys(MOUNTS) as MountName[]) {
    const body = JSON.stringify({ filter: { project: OTHER } });
    const route = { mount, name: 'deliveries/redeliver', path: '/', method: 'POST' } as const;
    const answer = await listeners.ask({ ...route, authorization, body });
    expect([answer.status, await answer.json()]).toMatchObject([403, { code: 'wrong_project' }]);
  }
  expect(listeners.jobs()).toBe(0);
});
