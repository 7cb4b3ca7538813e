/** A post is kept filled: when its worker ends, when it is replaced, and when a new one does not come to serve. */
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { Post } from '../../src/workers/post.ts';
import type { WorkerProcess } from '../../src/workers/worker-process.ts';
import { ManualClock } from '../support/clock.ts';
import { captureLog } from '../support/log.ts';

const LISTEN: AddressInfo = { address: '127.0.0.1', family: 'IPv4', port: 1 };

/** A worker without a process: it serves, fails and ends when the test says so. */
class Candidate {
  readonly #serving = Promise.withResolvers<AddressInfo | undefined>();
  readonly #ended = Promise.withResolvers<string>();
  readonly stops: boolean[] = [];
  killed = false;
  readonly worker = {
    ended: this.#ended.promise,
    stop: (handOver: boolean) => void this.stops.push(handOver),
    kill: () => void (this.killed = true),
    pid: 1,
  } as unknown as WorkerProcess;

  get hired() {
    return { worker: this.worker, serving: this.#serving.promise };
  }

  serve(): Promise<void> {
    this.#serving.resolve(LISTEN);
    return settle();
  }

  fail(): Promise<void> {
    this.#serving.reject(new Error('no'));
    return this.end();
  }

  end(): Promise<void> {
    this.#ended.resolve('SIGKILL');
    return settle();
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(resolve => setImmediate(resolve));
}

async function open() {
  const clock = new ManualClock();
  const hired: Candidate[] = [];
  const { log, lines } = captureLog();
  const hire = () => {
    const candidate = new Candidate();
    hired.push(candidate);
    return candidate.hired;
  };
  const post = new Post({ number: 3, hire, clock, log });
  const filling = post.fill();
  await hired[0]!.serve();
  expect(await filling).toEqual(LISTEN);
  /** Time passes, and what follows from that. */
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await settle();
  };
  return { post, clock, hired, lines, pass };
}

describe('a worker that ends', () => {
  it('is followed by another at once, where it had served for a while', async () => {
    const { hired, pass, lines } = await open();
    await pass(10_001);
    await hired[0]!.end();
    await pass(0);
    expect(hired).toHaveLength(2);
    expect(lines).toMatchObject([{ event: 'worker_lost', worker: 3, msg: 'a worker ended with SIGKILL' }]);
  });

  it('is followed after pauses that grow, until one has served for a while', async () => {
    const { clock, hired, pass } = await open();
    const pauses: (number | undefined)[] = [];
    for (let end = 0; end < 10; end += 1) {
      await hired.at(-1)!.end();
      pauses.push(clock.nextIn);
      await pass(clock.nextIn!);
      await hired.at(-1)!.serve();
    }
    expect(pauses).toEqual([0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    await pass(10_001);
    await hired.at(-1)!.end();
    expect(clock.nextIn).toBe(0);
  });

  it('is followed by yet another, where the next does not come to serve', async () => {
    const { hired, pass } = await open();
    await hired[0]!.end();
    await pass(0);
    await hired[1]!.fail();
    await pass(100);
    expect(hired).toHaveLength(3);
    expect(hired[1]!.killed).toBe(true);
  });

  it('is not followed where the post is closed', async () => {
    const { post, hired, pass } = await open();
    await hired[0]!.end();
    post.close();
    await pass(60_000);
    expect(hired).toHaveLength(1);
  });
});

describe('a replacement', () => {
  it('asks the old one to go only when the new one serves', async () => {
    const { post, hired } = await open();
    const replacing = post.replace();
    await settle();
    expect(hired[0]!.stops).toEqual([]);
    await hired[1]!.serve();
    expect(await replacing).toBe(true);
    expect(hired[0]!.stops).toEqual([true]);
    await hired[0]!.end();
    expect(hired).toHaveLength(2); // it is not missed
  });

  it('leaves the old one where it is, when the new one does not come to serve', async () => {
    const { post, hired, pass } = await open();
    const replacing = post.replace();
    await settle();
    await hired[1]!.fail();
    expect(await replacing).toBe(false);
    expect(hired[0]!.stops).toEqual([]);
    await hired[0]!.end();
    await pass(0);
    expect(hired).toHaveLength(3);
  });

  it('fills the post also where the old one ends meanwhile, with one and not two', async () => {
    const { post, hired, pass } = await open();
    const replacing = post.replace();
    await settle();
    await hired[0]!.end();
    await pass(60_000);
    await hired[1]!.serve();
    expect(await replacing).toBe(true);
    await pass(60_000);
    expect(hired).toHaveLength(2);
  });
});
