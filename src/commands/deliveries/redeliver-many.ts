/**
 * All deliveries that a filter finds get a new round: counted, asked for, begun as a job of the service, and
 * followed until that is done.
 */
import { systemClock } from '../../clock.ts';
import { type Told, told } from '../ask.ts';
import type { Client } from '../client.ts';
import { confirmed } from '../confirm.ts';
import { follow } from '../follow.ts';
import { CheckFailed, type Io, printJson } from '../output.ts';
import { type BulkFilter, type Count, countMatching, type JobFacts, readJob, startJob } from './job.ts';
import type { RedeliverOptions } from './redeliver.ts';

export async function redeliverMany(
  client: Client,
  filter: BulkFilter,
  options: RedeliverOptions,
  io: Io,
): Promise<void> {
  const count = told(await countMatching(client, filter));
  if (options.dryRun || count.matching === 0) {
    if (options.json) printJson(io, count);
    else io.stdout.write(`${amountOf(count)} found\n`);
    return;
  }
  if (!options.yes && !(await confirmed(io, `Redeliver ${amountOf(count)}?`))) {
    io.stderr.write('nothing was redelivered\n');
    throw new CheckFailed('not confirmed');
  }
  const job = told(await startJob(client, filter, options.idempotencyKey));
  if (options.wait !== false) await followJob(client, job.job_id, options, io);
  else if (options.json) printJson(io, job);
  else io.stdout.write(`${job.job_id}\n`);
}

function amountOf({ matching, exact }: Count): string {
  return `${exact ? '' : 'at least '}${matching} ${matching === 1 ? 'delivery' : 'deliveries'}`;
}

export async function followJob(
  client: Client,
  jobId: string,
  { timeout: timeoutMs, json }: RedeliverOptions,
  io: Io,
): Promise<void> {
  const { value: job } = await follow<Told<JobFacts>>({
    what: 'the redelivery',
    id: 'redelivering',
    ask: ({ signal }) => readJob(client, jobId, signal),
    standing: ({ value: { state, seen, total } }) => (state === 'done' ? undefined : `${seen} of ${total}`),
    lookAgain: `deliveries redeliver --job ${jobId}`,
    timeoutMs,
    clock: systemClock,
    io,
  });
  if (json) printJson(io, job);
  else io.stdout.write(`${sentenceOf(job)}\n`);
}

/** What is pending when its turn comes is on its way already. */
function sentenceOf({ seen, redelivered }: JobFacts): string {
  const passed = seen - redelivered;
  return `${redelivered} redelivered${passed === 0 ? '' : `, ${passed} passed over that were pending`}`;
}
