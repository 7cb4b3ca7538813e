/**
 * `npm run bench:store`: reads the options, measures the stores on an empty and on a filled database, and
 * prints the figures.
 */
import { parseArgs } from 'node:util';
import { chosen, positive, runCommand } from '../command.ts';
import { measure, type Scale } from './measure.ts';
import { type StoreName, STORES } from './place.ts';
import { asText, type StoreFigures, storeFigures } from './report.ts';
import { openStand } from './stand.ts';

const USAGE = `Usage: npm run bench:store -- [options]

  --deliveries N  deliveries of 1 KiB in each turn, of 100 KiB a tenth (default 20000)
  --rounds N      rounds that count, after one to warm up (default 5)
  --rows N        deliveries in the filled databases (default 2000000)
  --only LIST     of sqlite, postgres; separated by commas
  --database URL  of a user who may create databases; a server is started without it
  --json          figures as JSON
`;

interface Options extends Scale {
  readonly rows: number;
  readonly only: readonly StoreName[];
  readonly database?: string;
  readonly json: boolean;
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      deliveries: { type: 'string', default: '20000' },
      rounds: { type: 'string', default: '5' },
      rows: { type: 'string', default: '1000000' },
      only: { type: 'string', default: STORES.join() },
      database: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  return {
    deliveries: positive('--deliveries', values.deliveries),
    rounds: positive('--rounds', values.rounds),
    rows: positive('--rows', values.rows),
    only: chosen(values.only, STORES),
    ...(values.database !== undefined && { database: values.database }),
    json: values.json,
  };
}

async function run(options: Options, interrupted: AbortSignal): Promise<StoreFigures[]> {
  const began = performance.now();
  const progress = (line: string): void => {
    const seconds = ((performance.now() - began) / 1000).toFixed(0).padStart(4);
    process.stderr.write(`${seconds} s  ${line}\n`);
  };
  const stand = await openStand({ ...options, interrupted, progress });
  try {
    return storeFigures(await measure(stand, options, progress));
  } finally {
    await stand.close();
  }
}

process.exitCode = await runCommand(
  {
    usage: USAGE,
    readOptions,
    scale: ({ deliveries, rounds, rows }) => ({ deliveries, rounds, rows }),
    run,
    asText,
  },
  process.argv.slice(2),
);
