/**
 * `npm run bench:tracing`: reads the options, measures calls with tracing and metrics on and off, and prints what
 * that takes.
 */
import { parseArgs } from 'node:util';
import { positive, runCommand } from '../command.ts';
import { measure, type Scale } from './measure.ts';
import { asText, type TracingFigures, tracingFigures } from './report.ts';
import { openStand } from './stand.ts';

const USAGE = `Usage: npm run bench:tracing -- [options]

  --calls N        calls in each slice (default 1500), of those with a webhook 0.4 times as many
  --warm-up N      rounds of each pair that do not count (default 10)
  --rounds N       rounds of each pair that count (default 25)
  --pairs N        pairs of services, one after the other (default 3)
  --connections N  keep-alive connections of the load generator (default 32)
  --json           figures as JSON
`;

interface Options extends Scale {
  readonly json: boolean;
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      calls: { type: 'string', default: '1500' },
      'warm-up': { type: 'string', default: '10' },
      rounds: { type: 'string', default: '25' },
      pairs: { type: 'string', default: '3' },
      connections: { type: 'string', default: '32' },
      json: { type: 'boolean', default: false },
    },
  });
  return {
    calls: positive('--calls', values.calls),
    warmUp: positive('--warm-up', values['warm-up']),
    rounds: positive('--rounds', values.rounds),
    pairs: positive('--pairs', values.pairs),
    connections: positive('--connections', values.connections),
    json: values.json,
  };
}

async function run(options: Options, interrupted: AbortSignal): Promise<TracingFigures[]> {
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  const stand = await openStand(interrupted);
  try {
    const rounds = await measure(stand, options, progress);
    return tracingFigures(rounds, await stand.counting());
  } finally {
    await stand.close();
  }
}

process.exitCode = await runCommand(
  {
    usage: USAGE,
    readOptions,
    scale: ({ calls, warmUp, rounds, pairs, connections }) => ({
      calls,
      'warm-up': warmUp,
      rounds,
      pairs,
      connections,
    }),
    run,
    asText,
  },
  process.argv.slice(2),
);
