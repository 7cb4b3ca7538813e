/**
 * Whether the promise was kept: what a moody receiver must have seen of the runs whose callers had their
 * whole answer, what it must not have seen of any run, and what must be on record in the end.
 */
import { expect } from 'vitest';
import type { DeliveryRecord, Store } from '../../src/store/store.ts';
import type { WholeAnswer } from '../support/load.ts';
import { type Fate, fateOf, type MoodyReceiver, type Post } from './moody-receiver.ts';

const READ_AT_ONCE = 20;

type Posts = MoodyReceiver['posts'];

/** Whether its sender can have lost a delivery, with all that it knew of it, before the next POST came. */
export type Lost = (sent: Post, next: Post) => boolean;

/** A node that ended knows nothing more. */
export const ended: Lost = ({ node, life }, next) => next.lives[node] > life;

/** Those of which the receiver has not yet seen as much as it must. */
export function unmet(answers: readonly Pick<WholeAnswer, 'runId'>[], posts: Posts): string[] {
  return answers.map(({ runId }) => runId).filter(runId => !hasMetItsFate(runId, posts.get(runId)));
}

function hasMetItsFate(runId: string, posts: readonly Post[] | undefined): boolean {
  const last = posts?.at(-1);
  if (last === undefined) return false;
  return fateOf(runId) === 'exhausted' ? last.number === 3 : last.settled;
}

/** Throws unless all POSTs were permitted and carried what the callers got. */
export function expectLawful(answers: readonly WholeAnswer[], posts: Posts, lost: Lost): void {
  const unlawful = [...posts].map(([runId, each]) => ({ runId, each, rules: breachesOf(each, lost) }));
  expect(unlawful.filter(({ rules }) => rules.length > 0)).toEqual([]);
  expect(answers.filter(answer => !isSame(answer, posts.get(answer.runId)!))).toEqual([]);
}

/** Which rules the attempts on one run have broken. */
function breachesOf(posts: readonly Post[], lost: Lost): string[] {
  const breaches: string[] = [];
  const must = (rule: string, kept: boolean): void => void (kept || breaches.push(rule));
  for (const [index, post] of posts.entries()) {
    must('no number beyond 3', post.number <= 3);
    const before = posts[index - 1];
    if (before === undefined) continue;
    const sameSender = post.node === before.node && post.life === before.life;
    const mayRepeat = lost(before, post);
    must('numbers never go back', post.number >= before.number);
    must('only the third comes again', post.number > before.number || post.number === 3);
    must('it comes again only if its sender lost it', post.number > before.number || mayRepeat);
    must('another goes on only if its sender lost it', sameSender || mayRepeat);
    must('what is settled is repeated only if its sender lost it', !before.settled || mayRepeat);
  }
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

const STATES = { delivered: 'delivered', exhausted: 'failed', rejected: 'failed' } as const satisfies Record<
  Fate,
  string
>;

/** Throws unless everything has ended on record too. */
export async function expectSettled(store: Store, answers: readonly WholeAnswer[]): Promise<void> {
  expect((await store.backlog()).pending).toEqual(new Map());
  const runIds = answers.map(({ runId }) => runId);
  for await (const { runId, record } of recordsOf(store, runIds)) {
    const fate = fateOf(runId);
    const expected = { state: STATES[fate], ...(fate !== 'delivered' && { reason: fate }) };
    expect(record).toMatchObject(expected);
  }
}

/** What is on record of each run, a few at once. */
export async function* recordsOf(
  store: Store,
  runIds: readonly string[],
): AsyncGenerator<{ runId: string; record: DeliveryRecord | undefined }> {
  for (let start = 0; start < runIds.length; start += READ_AT_ONCE) {
    const some = runIds.slice(start, start + READ_AT_ONCE);
    const records = await Promise.all(some.map(runId => store.find(runId)));
    for (const [index, runId] of some.entries()) yield { runId, record: records[index] };
  }
}
