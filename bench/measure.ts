/**
 * The measurements. Each compares within one run: in every round each subject takes its turn, in a changing
 * order, after a first round that only warms up. A figure counts only if every answer and every delivery was
 * right; a wrong one ends the bench.
 */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Latency, latencyOf } from './latency.ts';
import type { Load, LoadResult } from './load.ts';
import type { Expectation } from './receiver.ts';
import { type Stand, SUBJECTS, type Subject, WITH_WEBHOOK, WITHOUT_WEBHOOK } from './stand.ts';
import { type Method, requestOf } from './workload.ts';

export interface Scale {
  /** Of each subject in each round. */
  readonly calls: number;
  readonly rounds: number;
  readonly connections: number;
}

/** One subject's turn. */
export interface Turn extends LoadResult {
  readonly subject: Subject;
  readonly method: Method;
  /** Bytes of the answer. */
  readonly size: number;
  readonly calls: number;
  /** Deliveries that arrived. */
  readonly deliveries: number;
  /** Of the server for one call, its delivery included. */
  readonly cpuMicros: number;
  /** From the first call to the last delivery, or to the last answer where there are none. */
  readonly totalMs: number;
}

export const METHODS: readonly Method[] = ['GET', 'POST'];
export const SMALL = 1024;
export const LARGE = 100 * 1024;
const LIMIT_MS = 120_000;
/** Long enough for one call to be over, its delivery included, before the next. */
const PAUSE_MS = 5;

/** CPU, rate and latency of every subject, with all connections busy. */
export function measureCalls(stand: Stand, { calls, rounds, connections }: Scale): Promise<Turn[]> {
  const turns = METHODS.flatMap(method =>
    SUBJECTS.map(subject => ({ subject, method, size: SMALL, calls, connections, pauseMs: 0 })),
  );
  return takeTurns(stand, rounds, turns);
}

/** How long it takes until every delivery has arrived, with calls made as fast as they go. */
export function measureDeliveries(stand: Stand, { calls, rounds, connections }: Scale): Promise<Turn[]> {
  const turn = { subject: WITH_WEBHOOK, method: 'POST', connections, pauseMs: 0 } as const;
  const large = Math.ceil(calls / 8);
  return takeTurns(stand, rounds, [
    { ...turn, size: SMALL, calls },
    { ...turn, size: LARGE, calls: large },
  ]);
}

/** What an answer's end waits for its delivery to be on disk: single calls, nothing else going on. */
export function measureCommit(stand: Stand, { calls, rounds }: Scale): Promise<Turn[]> {
  const turn = { method: 'POST', size: SMALL, connections: 1, pauseMs: PAUSE_MS } as const;
  const some = Math.ceil(calls / 10);
  return takeTurns(
    stand,
    rounds,
    [WITHOUT_WEBHOOK, WITH_WEBHOOK].map(subject => ({ ...turn, subject, calls: some })),
  );
}

/** What the disk itself takes to keep two pages: no commit can be faster. */
export async function measureDisk(stand: Stand, { calls }: Scale): Promise<Latency> {
  const pages = Buffer.alloc(8192, 1);
  const durations: number[] = [];
  await using file = await open(join(stand.dir, 'disk'), 'w');
  for (let i = 0; i < Math.ceil(calls / 10); i++) {
    await file.write(pages);
    const began = performance.now();
    await file.datasync();
    durations.push(performance.now() - began);
    await sleep(PAUSE_MS);
  }
  return latencyOf(durations);
}

type TurnOptions = Pick<Turn, 'subject' | 'method' | 'size' | 'calls'> &
  Pick<Load, 'connections' | 'pauseMs'>;

async function takeTurns(stand: Stand, rounds: number, turns: readonly TurnOptions[]): Promise<Turn[]> {
  const taken: Turn[] = [];
  for (let round = 0; round <= rounds; round++) {
    for (let i = 0; i < turns.length; i++) {
      const turn = await takeTurn(stand, turns[(i + round) % turns.length]!);
      if (round > 0) taken.push(turn);
    }
  }
  return taken;
}

async function takeTurn(stand: Stand, options: TurnOptions): Promise<Turn> {
  const { subject, method, size, calls, connections, pauseMs } = options;
  const server = stand.servers[subject];
  const webhook = subject === WITH_WEBHOOK;
  const target = webhook ? stand.target : undefined;
  const request = requestOf({ method, size, token: stand.token, target });
  const load: Load = { port: server.port, request, size, calls, connections, pauseMs, limitMs: LIMIT_MS };
  const expectation: Expectation = { deliveries: calls, size, limitMs: LIMIT_MS };
  if (webhook) await stand.receiver.ask('expect', expectation);

  const cpuBefore = await server.cpuMicros();
  const began = performance.now();
  const result = await stand.load.ask<LoadResult>('load', load);
  const deliveries = webhook ? await stand.receiver.ask<number>('arrived') : 0;
  const totalMs = performance.now() - began;
  await server.settled();
  const cpuMicros = ((await server.cpuMicros()) - cpuBefore) / calls;
  return { ...result, subject, method, size, calls, deliveries, cpuMicros, totalMs };
}
