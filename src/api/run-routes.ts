/**
 * Runs over HTTP: look at one, wait for its end, list them, cancel one. A run that has ended is told along
 * with its answer, which passes through as it is stored.
 */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { createRoute, type RouteConfigToTypedResponse } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { RunFilter, RunPage, RunRecord } from '../store/runs.ts';
import type { Body } from '../store/store.ts';
import { cursorAt } from './cursor.ts';
import { problemAnswers } from './problems.ts';
import { answerOf, type ApiEnv, createRouter, projectOf, type Router } from './router.ts';
import { RunList, RunListQuery, RunParams, RunQuery, RunWithAnswer } from './run-contract.ts';
import { openingOf, runJson } from './run-json.ts';
import { openAnswer, sendAnswer } from './stored-answer.ts';

/** What the API needs of runs. */
export interface Runs {
  /** Of any project where that is undefined. */
  find(projectId: string | undefined, runId: string): Promise<RunRecord | undefined>;
  result(projectId: string, runId: string): Promise<Body | undefined>;
  list(filter: RunFilter, page: RunPage): Promise<RunRecord[]>;
  /** False where the project has no such run that has not ended. */
  cancel(projectId: string, runId: string): Promise<boolean>;
  /** The run as soon as it has ended, or as it is when the time is up or `signal` aborts. */
  wait(projectId: string | undefined, runId: string, until: RunWait): Promise<RunRecord | undefined>;
}

export interface RunWait {
  readonly ms: number;
  readonly signal: AbortSignal;
}

export interface RunRoutesOptions {
  readonly runs: Runs;
  readonly log: Logger;
}

/** How long a cancelled run may take to end before it is told as it is. */
const CANCEL_WAIT_MS = 5_000;

const listRuns = createRoute({
  method: 'get',
  path: '/',
  operationId: 'listRuns',
  summary: 'Lists runs, the newest first',
  request: { query: RunListQuery },
  responses: { 200: answerOf(RunList, 'A page of runs'), ...problemAnswers(['invalid_query']) },
});

const getRun = createRoute({
  method: 'get',
  path: '/{run_id}',
  operationId: 'getRun',
  summary: 'Tells how a run stands, and what it ended with',
  request: { params: RunParams, query: RunQuery },
  responses: {
    200: answerOf(RunWithAnswer, 'The run, with its answer where it has ended'),
    ...problemAnswers(['invalid_query', 'run_not_found']),
  },
});

const cancelRun = createRoute({
  method: 'post',
  path: '/{run_id}/cancel',
  operationId: 'cancelRun',
  summary: 'Cancels a run, and waits a little for its end',
  request: { params: RunParams },
  responses: {
    200: answerOf(RunWithAnswer, 'The run as it then is; a run that was cancelled before is left as it was'),
    ...problemAnswers(['run_not_found', 'run_ended']),
  },
});

export const RUN_ROUTES = [listRuns, getRun, cancelRun] as const;

type RunResponse = RouteConfigToTypedResponse<typeof getRun>;

export function createRunRoutes({ runs, log }: RunRoutesOptions): Router {
  /** Waits no longer than the caller does. */
  async function waitFor(c: Context<ApiEnv>, runId: string, ms: number): Promise<RunRecord | undefined> {
    const { projectId, signal } = c.env.call;
    const over = new AbortController();
    try {
      const any = AbortSignal.any([signal, c.req.raw.signal, over.signal]);
      return await runs.wait(projectId, runId, { ms, signal: any });
    } finally {
      over.abort(); // or whoever still listens would be kept for as long as the service runs
    }
  }

  async function find(c: Context<ApiEnv>, runId: string): Promise<RunRecord> {
    const run = await runs.find(c.env.call.projectId, runId);
    if (run === undefined) throw new Problem('run_not_found');
    return run;
  }

  async function answer(c: Context<ApiEnv>, run: RunRecord | undefined): Promise<RunResponse> {
    if (run === undefined) throw new Problem('run_not_found');
    if (run.endedAt === undefined) return c.json(runJson(run), 200);
    const body = await runs.result(run.projectId, run.runId);
    await using stored = body && (await openAnswer(body));
    if (stored === undefined) return c.json({ ...runJson(run), result_expired: true as const }, 200);
    const { res, call } = c.env;
    await sendAnswer(res, { opening: openingOf(run) }, stored, error => {
      log.error({ err: error, run_id: call.runId }, 'the answer of a run could not be read to its end');
    });
    return RESPONSE_ALREADY_SENT as RunResponse & Response;
  }

  return createRouter('run_not_found')
    .openapi(listRuns, async c => {
      const { project, state, app, limit, cursor } = c.req.valid('query');
      const projectId = projectOf(c.env.call, project);
      const filter = {
        ...(projectId !== undefined && { projectId }),
        ...(app !== undefined && { app }),
        ...(state !== undefined && { state }),
      };
      const page = { limit: limit + 1, ...(cursor !== undefined && { before: cursor }) };
      const found = await runs.list(filter, page);
      const shown = found.slice(0, limit);
      const next = found.length > limit ? cursorAt(shown.at(-1)!.runId) : null;
      return c.json({ runs: shown.map(runJson), next_cursor: next }, 200);
    })
    .openapi(getRun, async c => {
      const { run_id: runId } = c.req.valid('param');
      const { wait = 0 } = c.req.valid('query');
      return answer(c, await (wait > 0 ? waitFor(c, runId, wait) : runs.find(c.env.call.projectId, runId)));
    })
    .openapi(cancelRun, async c => {
      const run = await find(c, c.req.valid('param').run_id);
      if (await runs.cancel(run.projectId, run.runId))
        return answer(c, await waitFor(c, run.runId, CANCEL_WAIT_MS));
      const ended = await find(c, run.runId);
      if (ended.state !== 'cancelled') throw new Problem('run_ended');
      return answer(c, ended);
    });
}
