/**
 * The load generator of asynchronous calls: each connection sends its next call once it has the 202 of the last
 * one, which is checked, as is that no two calls get the same run.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Latency, latencyOf } from '../latency.ts';
import { onAsk } from '../probe.ts';
import { runIdIn } from './calls.ts';

export interface AsyncLoad {
  readonly port: number;
  readonly request: string;
  readonly calls: number;
  readonly connections: number;
  readonly limitMs: number;
}

/** What callers wait for their 202. */
export interface AsyncLoadResult extends Latency {
  readonly wallMs: number;
}

onAsk('load', async (load: AsyncLoad): Promise<AsyncLoadResult> => {
  const sockets = Array.from({ length: load.connections }, () => connect(load.port, '127.0.0.1'));
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(new Error(`no end within ${load.limitMs} ms`)), load.limitMs);
  try {
    await Promise.all(sockets.map(socket => once(socket, 'connect')));
    return await callOver(sockets, load, limit.signal);
  } finally {
    clearTimeout(timer);
    for (const socket of sockets) socket.destroy();
  }
});

async function callOver(
  sockets: readonly Socket[],
  { calls, request }: AsyncLoad,
  signal: AbortSignal,
): Promise<AsyncLoadResult> {
  const latencies: number[] = [];
  const runIds = new Set<string>();
  let begun = 0;
  const lane = async (socket: Socket): Promise<void> => {
    socket.setNoDelay(true);
    while (begun < calls) {
      begun += 1;
      const sent = performance.now();
      socket.write(request);
      runIds.add(await nextRun(socket, signal));
      latencies.push(performance.now() - sent);
    }
  };
  const began = performance.now();
  await Promise.all(sockets.map(lane));
  const wallMs = performance.now() - began;
  if (runIds.size !== calls) throw new Error(`${calls} calls got ${runIds.size} runs`);
  return { wallMs, ...latencyOf(latencies) };
}

async function nextRun(socket: Socket, signal: AbortSignal): Promise<string> {
  for (let answer = ''; ; ) {
    const [chunk] = (await once(socket, 'data', { signal })) as [Buffer];
    answer += chunk.toString('latin1');
    const runId = runIdIn(answer);
    if (runId !== undefined) return runId;
  }
}
