/**
 * `afterword deliveries redeliver`: gives deliveries that have ended a new round of attempts, each by its run id,
 * or all that a filter finds, in the background of the service.
 */
import { Command, Option } from 'commander';
import { UsageError } from '../../errors.ts';
import { withClient } from '../client.ts';
import { canAsk } from '../confirm.ts';
import { idempotencyKeyArgument, jsonOption, targetArgument, timeoutOption } from '../options.ts';
import type { Io } from '../output.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from '../service-options.ts';
import { runIdArgument, runIdsArgument } from './answer.ts';
import { addFilterOptions, type DeliveryFilterOptions, filterOf } from './filter-options.ts';
import { redeliverEach } from './redeliver-each.ts';
import { followJob, redeliverMany } from './redeliver-many.ts';

export interface RedeliverOptions {
  readonly to?: string;
  readonly idempotencyKey?: string;
  readonly wait?: boolean;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly job?: string;
  readonly timeout: number;
  readonly json?: true;
}

interface Options extends ServiceOptions, DeliveryFilterOptions, RedeliverOptions {}

const NOTES = `${SERVICE_NOTES}

By run ids, the exit code is 1 where one was refused or, with --wait, was not delivered. By a filter, the
deliveries are counted first and, after a yes, redelivered in the background; Ctrl-C does not end that.

Examples:
  afterword deliveries redeliver 0192f1d2-… --wait
  afterword deliveries redeliver 0192f1d2-… --to https://staging.example/hook
  afterword deliveries redeliver --state failed --host hooks.example.com --since 6h --dry-run
  afterword deliveries redeliver --state failed --since 6h --yes`;

export function redeliverCommand(io: Io): Command {
  const command = new Command('redeliver')
    .description('Send deliveries again: a new round of attempts, freshly signed.')
    .argument('[run_id...]', 'the ids of the runs; none with a filter', runIdsArgument)
    .option('--to <url>', 'to another target, this time', targetArgument)
    .option(
      '--idempotency-key <key>',
      'within a day, the same key is the same redelivery',
      idempotencyKeyArgument,
    )
    .option('--wait', 'wait until they are delivered or have failed')
    .option('--no-wait', 'with a filter: do not wait, and print the id of the job')
    .option('--dry-run', 'with a filter: only count')
    .option('--yes', 'with a filter: do not ask')
    .addOption(new Option('--job <job_id>', 'wait for a job that was begun before').argParser(runIdArgument))
    .addOption(timeoutOption());
  addFilterOptions(command);
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((runIds: readonly string[] | undefined, options: Options) => run(runIds ?? [], options, io));
}

async function run(runIds: readonly string[], options: Options, io: Io): Promise<void> {
  const filter = filterOf(options);
  const wrong = mistakeIn(runIds, Object.keys(filter).length > 0, options, io);
  if (wrong !== undefined) throw new UsageError(wrong);
  await withClient(await serviceOf(options, io), client => {
    if (options.job !== undefined) return followJob(client, options.job, options, io);
    if (runIds.length > 0) return redeliverEach(client, runIds, options, io);
    return redeliverMany(client, filter, options, io);
  });
}

/** What cannot be meant, or cannot be done so. */
function mistakeIn(
  runIds: readonly string[],
  filtered: boolean,
  { to, idempotencyKey, dryRun, yes, job }: Options,
  io: Io,
): string | undefined {
  const byId = runIds.length > 0;
  const ways = [byId, filtered, job !== undefined].filter(Boolean).length;
  if (ways === 0) return 'run ids are needed, or a filter such as --state failed';
  if (ways > 1) return 'give run ids, or a filter, or a job, and only one of them';
  if (!byId && to !== undefined) return '--to is for run ids';
  if (!filtered && (dryRun || yes)) return '--dry-run and --yes are for a filter';
  if (runIds.length > 1 && idempotencyKey !== undefined) return '--idempotency-key is for a single run id';
  if (filtered && !dryRun && !yes && !canAsk(io)) return '--yes is needed where nobody can be asked';
  return undefined;
}
