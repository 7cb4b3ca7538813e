/**
 * `npm run bench`: reads the options, runs the measurements one after the other and prints their figures.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { measureCalls, measureCommit, measureDeliveries, measureDisk, type Scale } from './measure.ts';
import { asText, callFigures, commitFigures, deliveryFigures, type Figures } from './report.ts';
import { openStand, type Stand } from './stand.ts';

const USAGE = `Usage: npm run bench -- [options]

  --calls N        calls of each server in each round (default 2000)
  --rounds N       rounds that count, after one to warm up (default 9)
  --connections N  keep-alive connections of the load generator (default 32)
  --only LIST      of calls, deliveries, commit; separated by commas
  --json           figures as JSON
`;

/** Each takes its own measurement and adds its figures. */
const MEASUREMENTS = {
  calls: async (stand: Stand, scale: Scale) => ({ calls: callFigures(await measureCalls(stand, scale)) }),
  deliveries: async (stand: Stand, scale: Scale) => ({
    deliveries: deliveryFigures(await measureDeliveries(stand, scale)),
  }),
  commit: async (stand: Stand, scale: Scale) => ({
    commit: commitFigures(await measureCommit(stand, scale), await measureDisk(stand, scale)),
  }),
} satisfies Record<string, (stand: Stand, scale: Scale) => Promise<Figures>>;

type Measurement = keyof typeof MEASUREMENTS;

interface Options extends Scale {
  readonly only: readonly Measurement[];
  readonly json: boolean;
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      calls: { type: 'string', default: '2000' },
      rounds: { type: 'string', default: '9' },
      connections: { type: 'string', default: '32' },
      only: { type: 'string', default: Object.keys(MEASUREMENTS).join() },
      json: { type: 'boolean', default: false },
    },
  });
  const only = values.only.split(',');
  const unknown = only.find(name => !Object.hasOwn(MEASUREMENTS, name));
  if (unknown !== undefined) throw new Error(`--only: there is no measurement "${unknown}"`);
  return {
    calls: positive('--calls', values.calls),
    rounds: positive('--rounds', values.rounds),
    connections: positive('--connections', values.connections),
    only: only as Measurement[],
    json: values.json,
  };
}

function positive(name: string, text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new Error(`${name}: expected a whole number from 1, not "${text}"`);
  return Number(text);
}

async function run({ only, ...scale }: Options, interrupted: AbortSignal): Promise<Figures> {
  const stand = await openStand(interrupted);
  try {
    let figures: Figures = {};
    for (const name of only) figures = { ...figures, ...(await MEASUREMENTS[name](stand, scale)) };
    return figures;
  } finally {
    await stand.close();
  }
}

async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = readOptions(args);
  } catch (error) {
    process.stderr.write(`error: ${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => interruption.abort(new Error('interrupted')));
  }
  const { calls, rounds, connections } = options;
  const machine = { cores: availableParallelism(), node: process.versions.node };
  try {
    const figures = await run(options, interruption.signal);
    if (options.json) {
      process.stdout.write(
        `${JSON.stringify({ ...machine, calls, rounds, connections, figures }, null, 2)}\n`,
      );
    } else {
      process.stdout.write(`${machine.cores} cores, Node ${machine.node}; `);
      process.stdout.write(
        `${calls} calls, ${rounds} rounds, ${connections} connections\n\n${asText(figures)}`,
      );
    }
    return 0;
  } catch (error) {
    const reason = interruption.signal.aborted ? interruption.signal.reason : error;
    process.stderr.write(`error: ${(reason as Error).message}\n`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
