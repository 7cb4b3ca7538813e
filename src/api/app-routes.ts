/**
 * Apps over HTTP: where each is, and of those that run here how their processes stand.
 */
import { createRoute, z } from '@hono/zod-openapi';
import type { AppConfig, Config } from '../config/config.ts';
import type { HostedState, ReplicaState } from '../runtime/app-state.ts';
import { projectParameter, time } from './parameters.ts';
import { problemAnswers } from './problems.ts';
import { answerOf, createRouter, projectOf, type Router } from './router.ts';
import { isoTime } from './run-json.ts';

export interface AppRoutesOptions {
  readonly config: Pick<Config, 'apps'>;
  /** Apps that the service runs. */
  readonly hosted: () => Promise<readonly HostedState[]>;
}

const count = z.int().min(0);

const Replica = z
  .object({
    index: count,
    state: z.enum(['starting', 'ready', 'retired', 'pausing']),
    pid: z.int().optional().openapi({ description: 'Of the head of its process group' }),
    restarts: count,
    started_at: time.optional(),
    active_calls: count,
  })
  .openapi('Replica');

const App = z
  .object({
    project_id: z.string(),
    app: z.string(),
    runtime: z.enum(['cortex', 'custom']),
    place: z.enum(['url', 'process']).openapi({ description: 'Served elsewhere, or run here' }),
    state: z
      .enum(['elsewhere', 'idle', 'starting', 'ready', 'failing'])
      .openapi({ description: '`idle`: its first call starts it. `failing`: none of its processes is up' }),
    replicas: z.array(Replica),
    active_calls: count.optional().openapi({ description: 'Of all its processes' }),
    waiting_calls: count.optional().openapi({ description: 'Calls that wait for a place' }),
    log: z.array(z.object({ at: time, text: z.string() })).openapi({
      description: 'What it has printed last, at most 20 lines of 200 characters, the oldest first',
    }),
  })
  .openapi('App');

export const AppList = z.object({ apps: z.array(App) }).openapi('AppList');

const listApps = createRoute({
  method: 'get',
  path: '/',
  operationId: 'listApps',
  summary: 'Tells how the apps stand, on the machine that is asked',
  request: { query: z.strictObject({ project: projectParameter }) },
  responses: { 200: answerOf(AppList, 'All apps'), ...problemAnswers(['invalid_query']) },
});

export const APP_ROUTES = [listApps];

export function createAppRoutes({ config, hosted }: AppRoutesOptions): Router {
  return createRouter('not_found').openapi(listApps, async c => {
    const projectId = projectOf(c.env.call, c.req.valid('query').project);
    const states = new Map((await hosted()).map(state => [`${state.projectId}/${state.app}`, state]));
    const apps = [...config.apps.values()].flatMap(ofProject => [...ofProject.values()]);
    const own = apps.filter(app => projectId === undefined || app.projectId === projectId);
    return c.json({ apps: own.map(app => appJson(app, states.get(`${app.projectId}/${app.name}`))) }, 200);
  });
}

function appJson({ projectId, name, runtime, place }: AppConfig, state: HostedState | undefined) {
  const known = { project_id: projectId, app: name, runtime, place: place.kind };
  if (place.kind === 'url') return { ...known, state: 'elsewhere' as const, replicas: [], log: [] };
  const { phase = 'idle' as const, replicas = [], waiting = 0, lines = [] } = state ?? {};
  return {
    ...known,
    state: phase,
    replicas: replicas.map(replicaJson),
    active_calls: replicas.reduce((sum, { active }) => sum + active, 0),
    waiting_calls: waiting,
    log: lines.map(({ at, text }) => ({ at: isoTime(at), text })),
  };
}

function replicaJson({
  index,
  phase,
  pid,
  restarts,
  startedAt,
  active,
}: ReplicaState): z.output<typeof Replica> {
  return {
    index,
    state: phase,
    ...(pid !== undefined && { pid }),
    restarts,
    ...(startedAt !== undefined && { started_at: isoTime(startedAt) }),
    active_calls: active,
  };
}
