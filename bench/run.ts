/**
 * `npm run bench`: reads the options, runs the measurements one after the other and prints their figures.
 */
import { parseArgs } from 'node:util';
import { chosen, positive, runCommand } from './command.ts';
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
  return {
    calls: positive('--calls', values.calls),
    rounds: positive('--rounds', values.rounds),
    connections: positive('--connections', values.connections),
    only: chosen(values.only, Object.keys(MEASUREMENTS) as Measurement[]),
    json: values.json,
  };
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

process.exitCode = await runCommand(
  {
    usage: USAGE,
    readOptions,
    scale: ({ calls, rounds, connections }) => ({ calls, rounds, connections }),
    run,
    asText,
  },
  process.argv.slice(2),
);
