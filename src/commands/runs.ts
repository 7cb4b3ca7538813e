/**
 * `afterword runs`: the runs of a project's asynchronous calls, to list, look at, wait for and cancel.
 */
import { json as readJson } from 'node:stream/consumers';
import { Command, Option } from 'commander';
import { systemClock } from '../clock.ts';
import { answered, type Client, withClient } from './client.ts';
import { followRun } from './follow.ts';
import { integerArgument, jsonOption, timeoutOption } from './options.ts';
import { CheckFailed, Failed, type Io, isTerminal, printError, printJson } from './output.ts';
import { cancelRun, isEnded, openRun, type RunFacts } from './run-answer.ts';
import { createTable, failureOf, printRun, stateOf } from './run-view.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from './service-options.ts';

const STATES = ['queued', 'running', 'succeeded', 'failed', 'cancelled'];
/** The service gives no more at once. */
const PAGE = 200;
const TIMEOUT_MS = 60_000;

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

const NOTES = `${SERVICE_NOTES}

Examples:
  afterword runs list --state failed
  afterword runs list --all --json | jq -r 'select(.app == "hello") | .run_id'
  afterword runs show 0192f1d2-… --wait
  afterword runs cancel 0192f1d2-… 0192f1d3-…`;

export function runsCommand(io: Io): Command {
  return new Command('runs')
    .description('Look at the runs of asynchronous calls, and cancel them.')
    .addCommand(listCommand(io))
    .addCommand(showCommand(io))
    .addCommand(cancelCommand(io))
    .addHelpText('after', NOTES);
}

function listCommand(io: Io): Command {
  const command = new Command('list')
    .description('List runs, the newest first: a table on a terminal, otherwise lines of JSON.')
    .addOption(new Option('--state <state>', 'only those').choices(STATES))
    .option('--app <name>', 'only those of this app')
    .option('--limit <number>', 'how many', integerArgument(1, 1_000_000), 50)
    .addOption(new Option('--all', 'all that there are').conflicts('limit'));
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', SERVICE_NOTES)
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
    .addHelpText('after', SERVICE_NOTES)
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
    .addHelpText('after', SERVICE_NOTES)
    .action(async (runIds: string[], options: CancelOptions) =>
      withClient(await serviceOf(options, io), client => cancel(client, runIds, options, io)),
    );
}

async function list(client: Client, options: ListOptions, io: Io): Promise<void> {
  const table = createTable(io, systemClock);
  const asJson = options.json === true || !isTerminal(io.stdout);
  for await (const runs of pagesOf(client, options)) {
    if (asJson) for (const run of runs) printJson(io, run);
    else table.add(runs);
  }
}

async function* pagesOf(client: Client, { state, app, limit, all }: ListOptions): AsyncGenerator<RunFacts[]> {
  let left = all === true ? Number.POSITIVE_INFINITY : limit;
  let cursor: string | null | undefined;
  while (left > 0 && cursor !== null) {
    const wanted = { state, app, cursor, limit: String(Math.min(left, PAGE)) };
    const query = new URLSearchParams(Object.entries(wanted).filter(isGiven));
    const path = `/_runs?${query.toString()}`;
    const { status, body } = answered(await client.send({ method: 'GET', path, timeoutMs: TIMEOUT_MS }));
    if (status !== 200)
      throw new Failed(`status ${status}, which tells nothing of runs: is this the service?`);
    const page = (await readJson(body)) as { runs: RunFacts[]; next_cursor: string | null };
    yield page.runs;
    left -= page.runs.length;
    cursor = page.next_cursor;
  }
}

function isGiven(parameter: [string, string | undefined]): parameter is [string, string] {
  return parameter[1] !== undefined;
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

/** One that cannot be cancelled does not keep the others from it. */
async function cancel(
  client: Client,
  runIds: readonly string[],
  options: CancelOptions,
  io: Io,
): Promise<void> {
  let refused = 0;
  for (const runId of runIds) {
    const run = await cancelRun(client, runId);
    if (run.kind === 'fault') {
      printError(io, `${runId}: ${run.message}`);
      refused += 1;
    } else if (options.json) printJson(io, { run_id: runId, state: run.facts.state });
    else io.stdout.write(`${runId} ${stateOf(run.facts)}\n`);
  }
  if (refused > 0) throw new CheckFailed(`${refused} of ${runIds.length} were not cancelled`);
}
