/**
 * Redelivery in bulk as the service tells it: how many deliveries a filter finds, and the job that gives them
 * all a new round.
 */
import type { z } from '@hono/zod-openapi';
import type { Counted, Job, JobAccepted } from '../../api/delivery-contract.ts';
import { ask, type Told } from '../ask.ts';
import type { Client, Fault } from '../client.ts';

export type JobFacts = z.output<typeof Job>;
export type Count = z.output<typeof Counted>;
export type Accepted = z.output<typeof JobAccepted>;
export type BulkFilter = Readonly<Record<string, string>>;

const PATH = '/_deliveries/redeliver';

export function countMatching(client: Client, filter: BulkFilter): Promise<Told<Count> | Fault> {
  const body = JSON.stringify({ filter, dryRun: true });
  const expected = { key: 'matching', what: 'a count of deliveries' } as const;
  return ask<Count>(client, { method: 'POST', path: PATH, body }, expected);
}

export function startJob(
  client: Client,
  filter: BulkFilter,
  idempotencyKey: string | undefined,
): Promise<Told<Accepted> | Fault> {
  const question = {
    method: 'POST',
    path: PATH,
    headers: idempotencyKey === undefined ? [] : ['Idempotency-Key', idempotencyKey],
    body: JSON.stringify({ filter }),
  };
  return ask<Accepted>(client, question, { key: 'job_id', what: 'a redelivery' });
}

export function readJob(
  client: Client,
  jobId: string,
  signal?: AbortSignal,
): Promise<Told<JobFacts> | Fault> {
  const question = { path: `${PATH}/${jobId}`, ...(signal !== undefined && { signal }) };
  return ask<JobFacts>(client, question, { key: 'job_id', what: 'a redelivery' });
}
