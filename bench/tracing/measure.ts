/**
 * The measurement: the same calls on a service that is not traced and whose metrics nobody reads (off), and on
 * one whose every call is traced and whose metrics are read every second (on), in short slices: off, on, on, off.
 * What a machine does besides changes slowly, and so falls on both. A slice counts only if every answer, delivery
 * and span was right and there.
 */
import type { Load } from '../load.ts';
import type { Expectation } from '../receiver.ts';
import { requestOf } from '../workload.ts';
import type { SpanExpectation } from './collector.ts';
import type { Pair, Service, Stand } from './stand.ts';

export interface Scale {
  /** Pairs of services, one after the other: the same code is faster or slower from one process to the next. */
  readonly pairs: number;
  /** Of each pair that do not count: until the code of spans is compiled as that of calls is. */
  readonly warmUp: number;
  /** Of each pair that count. */
  readonly rounds: number;
  readonly connections: number;
  /** In a slice; of calls with a webhook fewer. */
  readonly calls: number;
}

/** What a call comes with, and how many spans are told of it. */
export const CASES = {
  'without webhook': { webhook: false, spans: 1, share: 1 },
  'with webhook': { webhook: true, spans: 2, share: 0.4 },
} as const;
export type Case = keyof typeof CASES;
export const CASE_NAMES = Object.keys(CASES) as Case[];

/** Off and on, of the same round: CPU of the service for one call, all that follows from it included. */
export interface Round {
  readonly of: Case;
  readonly calls: number;
  readonly spans: number;
  readonly offMicros: number;
  readonly onMicros: number;
}

const SIZE = 1024;
const LIMIT_MS = 60_000;
const SCRAPE_MS = 1_000;
const CALLERS_TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

export async function measure(
  stand: Stand,
  scale: Scale,
  progress: (line: string) => void,
): Promise<Round[]> {
  const taken: Round[] = [];
  for (let number = 1; number <= scale.pairs; number++) {
    const pair = await stand.openPair();
    for (let round = 1 - scale.warmUp; round <= scale.rounds; round++) {
      progress(`pair ${number} of ${scale.pairs}: ${round < 1 ? 'warming up' : `round ${round}`}`);
      for (const of of CASE_NAMES) {
        const each = await takeRound(stand, pair, of, scale);
        if (round > 0) taken.push(each);
      }
    }
    await pair.stop();
  }
  return taken;
}

async function takeRound(stand: Stand, pair: Pair, of: Case, scale: Scale): Promise<Round> {
  const { spans, share } = CASES[of];
  const calls = Math.ceil(scale.calls * share);
  const slice = { of, calls, connections: scale.connections };
  const cpu = { offMicros: 0, onMicros: 0 };
  for (const state of ['off', 'on', 'on', 'off'] as const) {
    const traced = state === 'on';
    cpu[`${state}Micros`] += (await takeSlice(stand, pair[state], { ...slice, traced })) / 2;
  }
  return { of, calls: calls * 4, spans: calls * spans * 2, ...cpu };
}

interface Slice extends Pick<Load, 'calls' | 'connections'> {
  readonly of: Case;
  readonly traced: boolean;
}

/** Tells the CPU of the service for one call. */
async function takeSlice(stand: Stand, service: Service, slice: Slice): Promise<number> {
  const { calls, connections, of, traced } = slice;
  const { webhook, spans } = CASES[of];
  const { receiver, collector, token } = stand;
  const target = webhook ? stand.target : undefined;
  const request = requestOf({ method: 'POST', size: SIZE, token, target, traceparent: CALLERS_TRACE });
  const common = { size: SIZE, limitMs: LIMIT_MS };
  const load: Load = { ...common, port: service.port, request, calls, connections, pauseMs: 0 };
  if (webhook) await receiver.ask('expect', { ...common, deliveries: calls } satisfies Expectation);
  const told: SpanExpectation = { spans: calls * spans, limitMs: LIMIT_MS };
  if (traced) await collector.ask('expect', told);

  const before = await service.cpuMicros();
  const scraping = traced ? startScraping(service) : undefined;
  await stand.load.ask('load', load);
  if (webhook) await receiver.ask('arrived');
  await service.settled();
  if (traced) await collector.ask('arrived');
  await scraping?.stop();
  return ((await service.cpuMicros()) - before) / calls;
}

/** At once, and every second from then on: so there is one in every slice, however short. */
function startScraping(service: Service): { stop(): Promise<void> } {
  let scraping = service.scrape();
  scraping.catch(() => {}); // told to whoever stops it
  const timer = setInterval(() => {
    scraping = scraping.then(() => service.scrape());
    scraping.catch(() => {});
  }, SCRAPE_MS);
  return {
    async stop() {
      clearInterval(timer);
      await scraping;
    },
  };
}
