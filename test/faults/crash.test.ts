/**
 * What is acknowledged survives: under load the service is killed and started again at random moments, and
 * in the end every run whose caller had its whole answer has met its fate, as the contract has it.
 */
import { readdir } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { openApp, readText } from '../support/app.ts';
import { startLoad, type WholeAnswer } from '../support/load.ts';
import {
  type Addresses,
  configure,
  openStoreOf,
  type Place,
  readMetric,
  serve,
  type ServiceProcess,
} from '../support/process.ts';
import { testToken } from '../support/service.ts';
import { type Fate, fateOf, openMoodyReceiver, type Post } from './moody-receiver.ts';

const KILLS = process.env['AFTERWORD_FAULTS'] === 'long' ? 500 : 20;
/** The latest moment of a kill, after the start or after the service was ready. */
const LATEST_MS = 900;
const SETTLED = { timeout: 30_000, interval: 100 };

/** Answers with as many bytes as it is asked for, half of the time without telling how many. */
async function answerAsAsked(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { call, size } = JSON.parse(await readText(req)) as { call: number; size: number };
  const answer = JSON.stringify({ call, fill: 'x'.repeat(size) });
  res.setHeader('Content-Type', 'application/json');
  if (call % 4 < 2) res.setHeader('Content-Length', answer.length);
  res.write(answer.slice(0, 50));
  res.end(answer.slice(50));
}

async function prepare(): Promise<Place> {
  const app = await openApp((req, res) => {
    answerAsAsked(req, res).catch(() => res.destroy()); // the service was killed while it asked
  });
  onTestFinished(() => app.close());
  return configure({
    apps: { custom: { runtime: 'custom', url: app.url }, cortex: { runtime: 'cortex', url: app.url } },
    // The promise is that of the disk: an answer that is let go before its delivery is stored has none.
    webhooks: { attemptTimeout: '3s', commitWait: '10s' },
  });
}

/** One kill in four comes while it starts, the others while it serves. */
async function killAtRandom(service: ServiceProcess, onReady: (at: Addresses) => void): Promise<void> {
  const ready = service.ready.then(onReady, () => {});
  if (Math.random() < 0.75) await ready;
  await setTimeout(Math.random() * LATEST_MS);
  await service.kill();
  await ready;
}

const stateOf = { delivered: 'delivered', exhausted: 'failed', rejected: 'failed' } as const satisfies Record<
  Fate,
  string
>;

/** Whether the receiver has seen as much of a run as it ever must. */
function hasMetItsFate(runId: string, posts: readonly Post[] | undefined): boolean {
  const last = posts?.at(-1);
  if (last === undefined) return false;
  return fateOf(runId) === 'exhausted' ? last.number === 3 : last.settled;
}

/** Which rules the attempts on one run have broken. */
function breachesOf(posts: readonly Post[]): string[] {
  const breaches: string[] = [];
  const must = (rule: string, kept: boolean): void => void (kept || breaches.push(rule));
  for (const [index, { number, life }] of posts.entries()) {
    const before = posts[index - 1];
    must('no number beyond 3', number <= 3);
    if (before === undefined) continue;
    must('numbers never go back', number >= before.number);
    must('only the third comes again', number > before.number || number === 3);
    must('it comes again only if its process ended', number > before.number || life > before.life);
    must('what is settled is repeated only if its process ended', !before.settled || life > before.life);
  }
  must('three, and one more for each end', posts.length <= 3 + posts.at(-1)!.life - posts[0]!.life);
  const contents = posts.flatMap(({ content }) => content ?? []);
  must('one body', new Set(contents.map(({ digest }) => digest)).size <= 1);
  must(
    'signed',
    contents.every(({ signed }) => signed),
  );
  return breaches;
}

/** Whether the delivery carries what the caller got. */
function isSame({ app, digest }: WholeAnswer, posts: readonly Post[]): boolean {
  const { content } = posts.at(-1)!;
  return (app === 'cortex' ? content?.digest : content?.resultDigest) === digest;
}

describe('a service that is killed again and again', () => {
  it(`delivers what ${KILLS} kills could have cost`, async () => {
    const place = await prepare();
    const receiver = await openMoodyReceiver('the secret of the load');
    const load = startLoad({ token: await testToken(), target: receiver.url });

    for (let kill = 0; kill < KILLS; kill += 1) {
      await killAtRandom(serve(place), ({ port }) => load.aim(port));
      load.aim(undefined);
      await receiver.nextLife();
    }

    const service = serve(place);
    const addresses = await service.ready;
    const before = load.answers.length;
    load.aim(addresses.port);
    await vi.waitUntil(() => load.answers.length > before + 50, SETTLED);
    const answers = await load.stop();
    const open = (): string[] =>
      answers.map(({ runId }) => runId).filter(runId => !hasMetItsFate(runId, receiver.posts.get(runId)));
    await vi.waitFor(() => expect(open()).toEqual([]), SETTLED);
    await vi.waitFor(async () => expect(await readMetric(addresses, 'deliveries_held')).toBe(0), SETTLED);
    expect(await service.stop()).toEqual({ code: 0, signal: null });

    expect(answers.length).toBeGreaterThan(KILLS * 3);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const unlawful = [...receiver.posts].map(([runId, posts]) => ({
      runId,
      posts,
      rules: breachesOf(posts),
    }));
    expect(unlawful.filter(({ rules }) => rules.length > 0)).toEqual([]);
    expect(answers.filter(answer => !isSame(answer, receiver.posts.get(answer.runId)!))).toEqual([]);
    await expectSettled(await openStoreOf(place), place, answers);
  });
});

/** On record, too, everything has ended; and no file is left that belongs to no delivery. */
async function expectSettled(store: Store, { data }: Place, answers: readonly WholeAnswer[]): Promise<void> {
  expect((await store.backlog()).pending).toEqual(new Map());
  for (const { runId } of answers) {
    const fate = fateOf(runId);
    const expected = { state: stateOf[fate], ...(fate !== 'delivered' && { reason: fate }) };
    expect(await store.find(runId)).toMatchObject(expected);
  }
  const files = await readdir(join(data, 'spool'));
  const known = await Promise.all(files.map(file => store.find(file).catch(() => undefined)));
  expect(files.filter((_, index) => known[index] === undefined)).toEqual([]);
}
