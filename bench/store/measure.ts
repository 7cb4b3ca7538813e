/**
 * The measurement: every life, size and number of dispatchers of a store, each time on the empty database and
 * on the filled one right after the other, in a changing order, after a first round that only warms up. A turn
 * counts only if every delivery of it is found delivered by one attempt, and nothing is left.
 */
import type { Child } from '../child.ts';
import { type Latency, latencyOf } from '../latency.ts';
import { LARGE, SMALL } from './deliveries.ts';
import { assertSettled } from './ground.ts';
import type { Done, Share } from './lives.ts';
import type { StoreName } from './place.ts';
import type { Site, Sites, Stand } from './stand.ts';

export const LIVES = ['handed off', 'claimed'] as const;
export type Life = (typeof LIVES)[number];

export interface Scale {
  /** Of 1 KiB in each turn; of the large ones a tenth. */
  readonly deliveries: number;
  readonly rounds: number;
}

/** What is measured in one turn. */
export interface Case {
  readonly store: StoreName;
  readonly life: Life;
  /** Bytes of a body. */
  readonly size: number;
  readonly dispatchers: number;
}

/** One turn on one of the databases. */
export interface Turn extends Case {
  readonly filled: boolean;
  readonly deliveries: number;
  readonly totalMs: number;
  /** Of the nodes, for one delivery. */
  readonly cpuMicros: number;
  /** Of the database's server, for one delivery. */
  readonly serverCpuMicros?: number;
  readonly firstWrite: Latency;
}

/** Attempts in flight on a node, as configured by default. */
const IN_FLIGHT = 256;
const LIMIT_MS = 120_000;

export async function measure(
  { sites }: Stand,
  { deliveries, rounds }: Scale,
  progress: (line: string) => void,
): Promise<Turn[]> {
  const taken: Turn[] = [];
  for (let round = 0; round <= rounds; round++) {
    for (const each of sites) {
      for (const subject of casesOf(each)) {
        const count = subject.size === LARGE ? Math.ceil(deliveries / 10) : deliveries;
        const turns = await takeTurns(each, subject, count, round);
        progress(`${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}: ${describe(turns)}`);
        if (round > 0) taken.push(...turns);
      }
    }
  }
  return taken;
}

function casesOf({ store, empty }: Sites): Case[] {
  return [SMALL, LARGE].flatMap(size =>
    LIVES.flatMap(life => empty.nodes.map((_node, index) => ({ store, life, size, dispatchers: index + 1 }))),
  );
}

/** On the empty database and on the filled one; which comes first changes with the rounds. */
async function takeTurns(
  { empty, filled }: Sites,
  subject: Case,
  deliveries: number,
  round: number,
): Promise<Turn[]> {
  const order = round % 2 === 0 ? [empty, filled] : [filled, empty];
  const turns: Turn[] = [];
  for (const site of order) {
    const turn = { ...subject, filled: site === filled, deliveries };
    turns.push({ ...turn, ...(await takeTurn(site, subject, deliveries)) });
    if (site === empty) await empty.clear();
  }
  return turns;
}

async function takeTurn(site: Site, { life, size, dispatchers }: Case, deliveries: number) {
  const nodes = site.nodes.slice(0, dispatchers);
  const share = (index: number): Share => ({
    deliveries: Math.floor((deliveries + index) / dispatchers),
    size,
    inFlight: IN_FLIGHT,
  });
  const ask = <Answer>(name: string): Promise<Answer[]> =>
    inTime(Promise.all(nodes.map((node, index) => node.ask<Answer>(name, share(index)))));
  const since = Date.now();
  if (life === 'claimed') await ask('leave');
  const cpuBefore = await cpuOf(site, nodes);
  const began = performance.now();
  const done = await ask<Done>(life === 'claimed' ? 'drain' : 'handOff');
  const totalMs = performance.now() - began;
  const cpuAfter = await cpuOf(site, nodes);
  assertSettled(await site.tally(since), deliveries);
  const spent = (index: number): number => (cpuAfter[index]! - cpuBefore[index]!) / deliveries;
  return {
    totalMs,
    cpuMicros: spent(0),
    ...(cpuBefore.length > 1 && { serverCpuMicros: spent(1) }),
    firstWrite: latencyOf(done.flatMap(({ firstWrites }) => firstWrites)),
  };
}

/** Of the nodes, and of the server where that can be told. */
async function cpuOf(site: Site, nodes: readonly Child[]): Promise<number[]> {
  const used = await Promise.all(nodes.map(node => node.ask<number>('cpu')));
  const server = await site.serverCpuMicros();
  return [used.reduce((total, micros) => total + micros, 0), ...(server === undefined ? [] : [server])];
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`a turn takes more than ${LIMIT_MS} ms`)), LIMIT_MS);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export function perSecond({ deliveries, totalMs }: Turn): number {
  return (deliveries / totalMs) * 1000;
}

export function nameOf({ store, life, size, dispatchers }: Case): string {
  return `${store}, ${life}, ${size / 1024} KiB, ${dispatchers} dispatcher${dispatchers === 1 ? '' : 's'}`;
}

function describe(turns: readonly Turn[]): string {
  const rates = turns.map(turn => `${turn.filled ? 'filled' : 'empty'} ${perSecond(turn).toFixed(0)}/s`);
  return `${nameOf(turns[0]!)}: ${rates.join(', ')}`;
}
