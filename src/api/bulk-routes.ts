/**
 * Redelivery in bulk over HTTP: how many deliveries a filter finds, a job that gives them all a new round in
 * the background, and how far that has come.
 */
import { createRoute } from '@hono/zod-openapi';
import { uuidv7 } from 'uuidv7';
import type { Clock } from '../clock.ts';
import { Problem } from '../errors.ts';
import type { Store } from '../store/store.ts';
import { countMatching } from './counting.ts';
import { BulkBody, Counted, IdempotencyHeader, Job, JobAccepted, JobParams } from './delivery-contract.ts';
import { filterOf } from './delivery-filter.ts';
import { jobJson } from './delivery-json.ts';
import { checkStore } from './delivery-routes.ts';
import { idempotencyOf } from './idempotency.ts';
import { bodyOf, readJson } from './json-body.ts';
import { problemAnswers } from './problems.ts';
import { answerOf, createRouter, described, projectOf, type Router } from './router.ts';

export interface BulkRoutesOptions {
  readonly store: Pick<Store, 'available' | 'ledger'>;
  readonly clock: Clock;
  /** There is a job to be carried out. */
  readonly onJob: () => void;
}

const redeliverMany = createRoute({
  method: 'post',
  path: '/',
  operationId: 'redeliverMany',
  summary: 'Gives all deliveries that a filter finds, and that have ended, a new round, in the background',
  request: {},
  responses: {
    200: answerOf(Counted, 'With `dryRun`: how many there are'),
    202: {
      ...answerOf(JobAccepted, 'The job that does it'),
      headers: { Location: { schema: { type: 'string' as const }, description: 'Where the job is told' } },
    },
    ...problemAnswers([
      'invalid_body',
      'invalid_idempotency_key',
      'request_too_large',
      'idempotency_key_reused',
      'store_unavailable',
    ]),
  },
});

const getJob = createRoute({
  method: 'get',
  path: '/{job_id}',
  operationId: 'getRedeliveryJob',
  summary: 'Tells how far a redelivery in bulk has come',
  request: { params: JobParams },
  responses: { 200: answerOf(Job, 'The job'), ...problemAnswers(['job_not_found']) },
});

export const BULK_ROUTES = [
  described(redeliverMany, { headers: IdempotencyHeader, body: bodyOf(BulkBody, true) }),
  getJob,
];

export function createBulkRoutes({ store, clock, onJob }: BulkRoutesOptions): Router {
  const { ledger } = store;
  return createRouter('job_not_found')
    .openapi(redeliverMany, async c => {
      const { filter: asked, dryRun } = await readJson(c.req.raw, BulkBody);
      const { projectId } = c.env.call;
      const now = clock.now();
      const found = filterOf(asked, { projectId: projectOf(c.env.call, asked.project), now });
      const counting = await countMatching({ ledger, clock, signal: c.req.raw.signal }, found);
      if (dryRun) return c.json(counting, 200);
      const idempotency = idempotencyOf(c.req.header('Idempotency-Key'), [projectId ?? null, asked]);
      checkStore(store);
      const job = await ledger.addJob({
        id: uuidv7(),
        ...(projectId !== undefined && { projectId }),
        // What comes after the job was asked for is not meant.
        filter: { ...found, until: Math.min(found.until ?? now, now) },
        createdAt: now,
        total: counting.matching,
        ...(idempotency !== undefined && { idempotency }),
      });
      if (job === 'conflict') throw new Problem('idempotency_key_reused');
      onJob();
      c.header('Location', `${new URL(c.req.url).pathname}/${job.id}`);
      return c.json({ job_id: job.id, total: job.total }, 202);
    })
    .openapi(getJob, async c => {
      const job = await ledger.findJob(c.req.valid('param').job_id, c.env.call.projectId);
      if (job === undefined) throw new Problem('job_not_found');
      return c.json(jobJson(job), 200);
    });
}
