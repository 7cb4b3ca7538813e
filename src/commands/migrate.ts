/**
 * `afterword migrate`: moves the deliveries and runs of an embedded store to the PostgreSQL of the configuration,
 * and shows how far it has come.
 */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { systemClock } from '../clock.ts';
import type { Config, DatabaseConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { UsageError } from '../errors.ts';
import { type Counts, type Move, type Moved, migrate, type Progress } from '../migrate.ts';
import { createMeter } from './meter.ts';
import { configOption, jsonOption } from './options.ts';
import { type Io, printJson, printWarning } from './output.ts';

interface Options {
  readonly config?: string;
  readonly from?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

const NOTES = `
The service must not run on the data directory; nodes on the database may. Interrupted at any moment, run it
again with the same configuration: it goes on where it stopped. Once it has begun, no service starts on the
data directory any more. Nothing is deleted there.

Examples:
  afterword migrate --config nodes.yaml --from /var/lib/afterword --dry-run
  afterword migrate --config nodes.yaml --from /var/lib/afterword`;

export function migrateCommand(io: Io): Command {
  return new Command('migrate')
    .description('Move the deliveries and runs of an embedded store to the `database` of the configuration.')
    .addOption(configOption())
    .option(
      '--from <dir>',
      'the data directory of the embedded store; `data` of the configuration if left out',
    )
    .option('--dry-run', 'count what there is to move, and move nothing')
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((options: Options) => run(options, io));
}

async function run(options: Options, io: Io): Promise<void> {
  const { config, warnings } = loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  for (const warning of warnings) printWarning(io, warning);
  const from = options.from === undefined ? config.data : resolve(io.cwd, options.from);
  const dryRun = options.dryRun === true;
  const moved = await migrate({
    from,
    database: databaseOf(config),
    encryptionKeys: config.encryptionKeys,
    dryRun,
    clock: systemClock,
    progress: createProgress(io, from, dryRun),
  });
  if (options.json) printJson(io, resultOf(moved, from, dryRun));
  else io.stdout.write(`${sentenceOf(moved, dryRun)}\n`);
  if (!dryRun) tellWhatFollows(moved, from, io);
}

function databaseOf({ database }: Config): DatabaseConfig {
  if (database !== undefined) return database;
  throw new UsageError(
    '`database` is not set in the configuration: it says where the deliveries and runs are moved to',
  );
}

function createProgress(io: Io, from: string, dryRun: boolean): Progress {
  const meter = createMeter(io.stderr, 'deliveries and runs');
  return {
    begin(left, { place, resumed }) {
      if (dryRun) return;
      io.stderr.write(`${resumed ? 'going on with the move' : 'moving'} from ${from} to ${place}\n`);
      meter.begin(deliveriesOf(left) + runsOf(left));
    },
    advance(part, count) {
      if (part !== 'keys') meter.advance(count);
    },
  };
}

function deliveriesOf({ pending, settled }: Counts): number {
  return pending + settled;
}

function runsOf(counts: Counts): number {
  return counts.waiting + endedOf(counts);
}

function endedOf({ kept, delivered }: Counts): number {
  return kept + delivered;
}

function resultOf(moved: Moved, from: string, dryRun: boolean): Record<string, unknown> {
  const { counts, place, resumed, resealed, present, bodiesMissing } = moved;
  return {
    from,
    to: place,
    dry_run: dryRun,
    resumed,
    pending: counts.pending,
    settled: counts.settled,
    waiting_runs: counts.waiting,
    ended_runs: endedOf(counts),
    idempotency_keys: counts.keys,
    ...(!dryRun && { resealed, present, bodies_missing: bodiesMissing }),
  };
}

function sentenceOf({ counts, place }: Moved & Move, dryRun: boolean): string {
  const deliveries = `${deliveriesOf(counts)} deliveries (${counts.pending} pending, ${counts.settled} settled)`;
  const runs = `${runsOf(counts)} runs (${counts.waiting} waiting, ${endedOf(counts)} ended)`;
  return `${deliveries} and ${runs} ${dryRun ? 'to move' : 'moved'} to ${place}`;
}

function tellWhatFollows({ resealed, present, bodiesMissing }: Moved, from: string, io: Io): void {
  const tell = (text: string) => io.stderr.write(`${text}\n`);
  if (resealed > 0) tell(`${resealed} secrets were sealed anew with the newest encryptionKey`);
  if (present > 0) tell(`${present} of them were there already, and left as they are there`);
  if (bodiesMissing > 0) printWarning(io, `${bodiesMissing} bodies are missing in ${from}/spool`);
  tell(`the nodes on that database go on with what is pending and waiting; ${from} is not needed any more`);
}
