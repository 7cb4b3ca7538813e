/**
 * The load generator: a number of calls over keep-alive connections, each connection sending its next call
 * once the answer to the last one is whole and right. Bare sockets and a request made beforehand, so that it
 * takes as little as possible of the machine that it shares with what it measures.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Latency, latencyOf } from './latency.ts';
import { onAsk } from './probe.ts';
import { answerOf } from './workload.ts';

export interface Load {
  readonly port: number;
  readonly request: string;
  /** Bytes of the answer. */
  readonly size: number;
  readonly calls: number;
  readonly connections: number;
  /** Rest between an answer and the connection's next call. */
  readonly pauseMs: number;
  readonly limitMs: number;
}

export interface LoadResult extends Latency {
  readonly wallMs: number;
}

onAsk('load', async (load: Load): Promise<LoadResult> => {
  const sockets = Array.from({ length: load.connections }, () => connect(load.port, '127.0.0.1'));
  try {
    await Promise.all(sockets.map(socket => once(socket, 'connect')));
    return await callOver(sockets, load);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

async function callOver(sockets: readonly Socket[], load: Load): Promise<LoadResult> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  const latencies: number[] = [];
  let begun = 0;
  const began = performance.now();
  for (const socket of sockets) {
    const call = (): void => {
      if (begun === load.calls) return;
      begun++;
      const sent = performance.now();
      socket.write(load.request);
      answer.next(() => {
        latencies.push(performance.now() - sent);
        if (latencies.length === load.calls) resolve();
        else if (load.pauseMs === 0) call();
        else setTimeout(call, load.pauseMs);
      });
    };
    const answer = new Answer(answerOf(load.size), reject);
    socket.setNoDelay(true).on('data', (chunk: Buffer) => answer.push(chunk));
    socket.on('error', reject).on('close', () => reject(new Error('a connection was closed')));
    call();
  }
  const limit = setTimeout(() => reject(new Error(`no end within ${load.limitMs} ms`)), load.limitMs);
  await ended.finally(() => clearTimeout(limit));
  const wallMs = performance.now() - began;
  return { wallMs, ...latencyOf(latencies) };
}

/** Puts one answer at a time together and holds it against what it should be. */
class Answer {
  readonly #expected: Buffer;
  readonly #onFault: (error: Error) => void;
  #chunks: Buffer[] = [];
  #size = 0;
  /** Where the body begins; 0 until the head is there. */
  #bodyStart = 0;
  #whenWhole = (): void => {};

  constructor(expected: Buffer, onFault: (error: Error) => void) {
    this.#expected = expected;
    this.#onFault = onFault;
  }

  next(whenWhole: () => void): void {
    this.#chunks = [];
    this.#size = 0;
    this.#bodyStart = 0;
    this.#whenWhole = whenWhole;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#bodyStart === 0) this.#readHead();
    if (this.#bodyStart === 0 || this.#size < this.#bodyStart + this.#expected.length) return;
    if (this.#whole().subarray(this.#bodyStart).equals(this.#expected)) this.#whenWhole();
    else this.#onFault(new Error('an answer has another body'));
  }

  #readHead(): void {
    const end = this.#whole().indexOf('\r\n\r\n');
    if (end === -1) return;
    const head = this.#whole().toString('latin1', 0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (!head.startsWith('HTTP/1.1 200 ') || Number(length) !== this.#expected.length) {
      this.#onFault(new Error(`an answer is not as it should be:\n${head}`));
    }
    this.#bodyStart = end + 4;
  }

  #whole(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks, this.#size)];
    return this.#chunks[0]!;
  }
}
