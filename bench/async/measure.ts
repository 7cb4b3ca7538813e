/**
 * The measurement: for each store and each number of runs that an app takes at a time, calls as fast as they go,
 * on the service with the empty queue and on that with the deep one right after the other, in a changing order,
 * after a first round that only warms up. A turn counts only if every call got a 202 with a run of its own, and
 * every run came to the app once.
 */
import type { Expectation } from './app.ts';
import { asyncRequestOf, CONCURRENCIES, type Concurrency, quickApp } from './calls.ts';
import type { AsyncLoad, AsyncLoadResult } from './load.ts';
import type { Site, Sites, Stand, StoreName } from './stand.ts';

export interface Scale {
  /** Of each service in each turn. */
  readonly calls: number;
  readonly rounds: number;
  readonly connections: number;
}

/** What is measured in one turn. */
export interface Case {
  readonly store: StoreName;
  readonly concurrency: Concurrency;
}

/** One turn on one of the services. */
export interface Turn extends Case, AsyncLoadResult {
  readonly deep: boolean;
  readonly calls: number;
  /** From the first call until the last run has come to the app. */
  readonly totalMs: number;
  /** Of the service, for one call and its run. */
  readonly cpuMicros: number;
}

const LIMIT_MS = 300_000;

export const nameOf = ({ store, concurrency }: Case): string => `${store}, ${concurrency} at once`;

export async function measure(
  stand: Stand,
  { calls, rounds, connections }: Scale,
  progress: (line: string) => void,
): Promise<Turn[]> {
  const taken: Turn[] = [];
  for (let round = 0; round <= rounds; round++) {
    for (const sites of stand.sites) {
      for (const concurrency of CONCURRENCIES) {
        const turns = await takeTurns(stand, sites, { concurrency, calls, connections }, round);
        progress(`${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}: ${nameOf(turns[0]!)}`);
        if (round > 0) taken.push(...turns);
      }
    }
  }
  return taken;
}

interface TurnOptions extends Pick<Scale, 'calls' | 'connections'> {
  readonly concurrency: Concurrency;
}

/** Which comes first changes with the rounds. */
async function takeTurns(
  stand: Stand,
  { store, empty, deep }: Sites,
  options: TurnOptions,
  round: number,
): Promise<Turn[]> {
  const order = round % 2 === 0 ? [empty, deep] : [deep, empty];
  const turns: Turn[] = [];
  for (const site of order) {
    const { concurrency } = options;
    turns.push({ store, concurrency, deep: site === deep, ...(await takeTurn(stand, site, options)) });
  }
  return turns;
}

async function takeTurn(
  { app, load, token }: Stand,
  site: Site,
  { calls, connections, concurrency }: TurnOptions,
): Promise<Omit<Turn, keyof Case | 'deep'>> {
  const request = asyncRequestOf(quickApp(concurrency), token);
  const order: AsyncLoad = { port: site.port, request, calls, connections, limitMs: LIMIT_MS };
  await app.ask('expect', { runs: calls, limitMs: LIMIT_MS } satisfies Expectation);
  const cpuBefore = await site.cpuMicros();
  const began = performance.now();
  const result = await load.ask<AsyncLoadResult>('load', order);
  await app.ask('arrived');
  const totalMs = performance.now() - began;
  await site.settled();
  const cpuMicros = ((await site.cpuMicros()) - cpuBefore) / calls;
  return { ...result, calls, totalMs, cpuMicros };
}
