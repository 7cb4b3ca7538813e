/**
 * What happened in a window of time, over HTTP: rates, latencies, what waits, and who fails.
 */
import { createRoute } from '@hono/zod-openapi';
import type { Clock } from '../clock.ts';
import type { Store } from '../store/store.ts';
import { problemAnswers } from './problems.ts';
import { answerOf, createRouter, projectOf, type Router } from './router.ts';
import { isoTime } from './run-json.ts';
import { Stats, StatsQuery, WINDOWS } from './stats-contract.ts';
import { spansJson } from './stats-json.ts';

export interface StatsRoutesOptions {
  readonly store: Pick<Store, 'ledger' | 'stats'>;
  readonly clock: Clock;
}

const MOST_HOSTS = 10;

const getStats = createRoute({
  method: 'get',
  path: '/',
  operationId: 'getStats',
  summary: 'Tells what happened in the last hour, day or week, and what waits',
  request: { query: StatsQuery },
  responses: { 200: answerOf(Stats, 'The numbers'), ...problemAnswers(['invalid_query']) },
});

export const STATS_ROUTES = [getStats];

export function createStatsRoutes({ store, clock }: StatsRoutesOptions): Router {
  const { ledger, stats } = store;
  return createRouter('not_found').openapi(getStats, async c => {
    const { project, window } = c.req.valid('query');
    const projectId = projectOf(c.env.call, project);
    const { length, step } = WINDOWS[window];
    const until = clock.now();
    const since = Math.ceil((until - length) / step) * step;
    const of = { ...(projectId !== undefined && { projectId }), since };
    const [spans, hosts, { pending, oldestAt }] = await Promise.all([
      stats.spans({ ...of, step }),
      stats.failingHosts(of, MOST_HOSTS),
      ledger.pendingOf(projectId),
    ]);
    return c.json(
      {
        since: isoTime(since),
        step_seconds: step / 1000,
        ...spansJson(spans, { since, until, step }),
        backlog: { pending, ...(oldestAt !== undefined && { oldest_at: isoTime(oldestAt) }) },
        failing_hosts: hosts.map(({ host, attempts, failures }) => ({ host, attempts, failures })),
      },
      200,
    );
  });
}
