/**
 * `npm run bench:async`: reads the options, measures asynchronous calls with an empty and with a deep queue, and
 * prints the figures.
 */
import { parseArgs } from 'node:util';
import { positive, runCommand } from '../command.ts';
import { measure, type Scale } from './measure.ts';
import { type AsyncFigures, asText, asyncFigures } from './report.ts';
import { openStand, STORES, type StoreName } from './stand.ts';

const USAGE = `Usage: npm run bench:async -- [options]

  --calls N        calls in each turn (default 2000)
  --depth N        runs in the deep queue (default 10000)
  --rounds N       rounds that count, after one to warm up (default 7)
  --connections N  keep-alive connections of the load generator (default 8)
  --postgres       on PostgreSQL too, on a server that is started for it
  --json           figures as JSON
`;

interface Options extends Scale {
  readonly depth: number;
  readonly stores: readonly StoreName[];
  readonly json: boolean;
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      calls: { type: 'string', default: '2000' },
      depth: { type: 'string', default: '10000' },
      rounds: { type: 'string', default: '7' },
      connections: { type: 'string', default: '8' },
      postgres: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  return {
    calls: positive('--calls', values.calls),
    depth: positive('--depth', values.depth),
    rounds: positive('--rounds', values.rounds),
    connections: positive('--connections', values.connections),
    stores: values.postgres ? STORES : ['sqlite'],
    json: values.json,
  };
}

async function run(options: Options, interrupted: AbortSignal): Promise<AsyncFigures[]> {
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  const stand = await openStand({ ...options, interrupted, progress });
  try {
    return asyncFigures(await measure(stand, options, progress));
  } finally {
    await stand.close();
  }
}

process.exitCode = await runCommand(
  {
    usage: USAGE,
    readOptions,
    scale: ({ calls, depth, rounds, connections }) => ({ calls, depth, rounds, connections }),
    run,
    asText,
  },
  process.argv.slice(2),
);
