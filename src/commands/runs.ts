/**
 * `afterword runs`: the runs of a project's asynchronous calls, to list, look at, wait for and cancel.
 */
import { Command, Option } from 'commander';
import { systemClock } from '../clock.ts';
import { type Client, withClient } from './client.ts';
import { checkRefused, toEach } from './each-run.ts';
import { followRun } from './follow.ts';
import { allOption, jsonOption, limitOption, timeoutOption } from './options.ts';
import { Failed, type Io, printJson } from './output.ts';
import { pagesOf, printPages } from './pages.ts';
import { cancelRun, isEnded, openRun, type RunAnswer, type RunFacts } from './run-answer.ts';
import { failureOf, printRun, runColumns, stateOf } from './run-view.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from './service-options.ts';

const STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'];

interface ListOptions extends ServiceOptions {
  readonly state?: string;
  readonly app?: string;
  readonly limit: number;
  readonly all?: true;
  readonly json?: true;
}

interface ShowOptions extends ServiceOptions {
  readonly wait?: true;
  readonly timeout: number;
  readonly json?: true;
}

interface CancelOptions extends ServiceOptions {
  readonly json?: true;
}

const EXAMPLES = {
  list: `
  afterword runs list --state failed
  afterword runs list --all --json | jq -r 'select(.app == "hello") | .run_id'`,
  show: `
  afterword runs show 0192f1d2-… --wait`,
  cancel: `
  afterword runs cancel 0192f1d2-… 0192f1d3-…`,
} as const;

const notesOf = (...examples: readonly string[]): string =>
  `${SERVICE_NOTES}\n\nExamples:${examples.join('')}`;

export function runsCommand(io: Io): Command {
  return new Command('runs')
    .description('Look at the runs of asynchronous calls, and cancel them.')
    .addCommand(listCommand(io))
    .addCommand(showCommand(io))
    .addCommand(cancelCommand(io))
    .addHelpText('after', notesOf(...Object.values(EXAMPLES)));
}

function listCommand(io: Io): Command {
  const command = new Command('list')
    .description('List runs, the newest first: a table on a terminal, otherwise lines of JSON.')
    .addOption(new Option('--state <state>', 'only those').choices(STATES))
    .option('--app <name>', 'only those of this app')
    .addOption(limitOption())
    .addOption(allOption());
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', notesOf(EXAMPLES.list))
    .action(async (options: ListOptions) =>
      withClient(await serviceOf(options, io), client => list(client, options, io)),
    );
}

function showCommand(io: Io): Command {
  const command = new Command('show')
    .description('Show a run and, once it has ended, its answer; otherwise than on a terminal as JSON.')
    .argument('<run_id>', 'the id of the run')
    .option('--wait', 'wait for its end; the exit code is then 1 unless it succeeded')
    .addOption(timeoutOption());
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', notesOf(EXAMPLES.show))
    .action(async (runId: string, options: ShowOptions) =>
      withClient(await serviceOf(options, io), client => show(client, runId, options, io)),
    );
}

function cancelCommand(io: Io): Command {
  const command = new Command('cancel')
    .description('Cancel runs, and print the state of each.')
    .argument('<run_id...>', 'the ids of the runs');
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', notesOf(EXAMPLES.cancel))
    .action(async (runIds: string[], options: CancelOptions) =>
      withClient(await serviceOf(options, io), client => cancel(client, runIds, options, io)),
    );
}

async function list(client: Client, options: ListOptions, io: Io): Promise<void> {
  const { state, app, limit, all, json } = options;
  const listing = { name: 'runs', query: { state, app } } as const;
  const runs = pagesOf<RunFacts>(client, listing, all ? Number.POSITIVE_INFINITY : limit);
  await printPages(io, runs, { columns: runColumns(systemClock), json: json === true });
}

async function show(client: Client, runId: string, options: ShowOptions, io: Io): Promise<void> {
  const seen = await openRun(client, runId);
  if (seen.kind === 'fault') throw new Failed(seen.message);
  const run =
    options.wait && !isEnded(seen.facts.state)
      ? await followRun({ client, runId, timeoutMs: options.timeout, clock: systemClock, io })
      : seen;
  await printRun(io, run, { json: options.json === true, now: systemClock.now() });
  if (options.wait && run.facts.state !== 'succeeded') throw failureOf(run.facts);
}

async function cancel(
  client: Client,
  runIds: readonly string[],
  options: CancelOptions,
  io: Io,
): Promise<void> {
  const tell = (runId: string, { facts }: RunAnswer): void => {
    if (options.json) printJson(io, { run_id: runId, state: facts.state });
    else io.stdout.write(`${runId} ${stateOf(facts)}\n`);
  };
  const act = (runId: string) => cancelRun(client, runId);
  checkRefused(await toEach(runIds, { act, tell }, io), 'cancelled');
}
