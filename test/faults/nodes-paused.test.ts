/**
 * Two nodes, one of which stands still under load for longer than the other waits: the other takes over, and
 * when it goes on it sends nothing that it had begun before.
 */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { AttemptRecord } from '../../src/store/store.ts';
import { stateOf } from '../support/alive.ts';
import type { MoodyReceiver, Post } from './moody-receiver.ts';
import {
  ATTEMPT_MS,
  conclude,
  LATEST_MS,
  LONG,
  type Member,
  PER_TARGET,
  prepare,
  SLACK_MS,
  SOON,
  startBoth,
  untilBusy,
} from './nodes.ts';
import { type Lost, recordsOf } from './verdict.ts';

const [PAUSES, PAUSE_MS] = LONG ? [10, 15_000] : [1, 7_000];

/** A node was stopped before the one moment, and went on after the other. */
interface Pause {
  readonly stoppedAt: number;
  readonly wokenAt: number;
}

/** Something is to be cut off: it is stopped while an attempt of its own waits for an answer. */
async function untilOneHangs({ node }: Member, { posts }: MoodyReceiver): Promise<void> {
  const since = Date.now();
  const hangs = (post: Post): boolean => post.node === node && post.hangs && post.at >= since;
  await vi.waitUntil(() => [...posts.values()].some(each => each.some(hangs)), SOON);
}

async function pauseOnce({ process }: Member): Promise<Pause> {
  process.signal('SIGSTOP');
  await vi.waitUntil(() => stateOf(process.pid) === 'T', SOON);
  const stoppedAt = Date.now();
  await setTimeout(PAUSE_MS);
  const wokenAt = Date.now();
  process.signal('SIGCONT');
  return { stoppedAt, wokenAt };
}

/** Every POST was counted before it was sent, and the woken node counted anew what it sent. */
function strayPosts(
  posts: readonly Post[],
  attempts: readonly AttemptRecord[],
  pauses: readonly Pause[],
): Post[] {
  return posts.filter(post => {
    const same = posts.filter(({ number }) => number === post.number);
    const counted = attempts.filter(({ number }) => number === post.number);
    if (counted.length < same.length) return true;
    const woken = pauses.findLast(({ wokenAt }) => post.node === 0 && post.at >= wokenAt);
    return woken !== undefined && !counted.some(({ startedAt }) => startedAt >= woken.wokenAt);
  });
}

describe('a node of two that stands still under load', () => {
  it(`for ${PAUSE_MS / 1000} s: the other takes over, and it sends nothing stale when it goes on`, async () => {
    const rig = await prepare(2);
    const { posts } = rig.receiver;
    const members = await startBoth(rig);
    const pauses: Pause[] = [];
    for (let count = 0; count < PAUSES; count += 1) {
      await untilBusy(members);
      await setTimeout(Math.random() * LATEST_MS);
      await untilOneHangs(members[0], rig.receiver);
      pauses.push(await pauseOnce(members[0]));
      await untilBusy(members);
    }
    const lost: Lost = (sent, next) =>
      pauses.some(({ stoppedAt, wokenAt }) => sent.node === 0 && sent.at < wokenAt && next.at > stoppedAt);
    const records = await conclude(rig, members, lost);

    const cutOff: AttemptRecord[] = [];
    for await (const { runId, record } of recordsOf(records, [...posts.keys()])) {
      const { attempts } = record!;
      const stray = strayPosts(posts.get(runId)!, attempts, pauses);
      expect({ runId, stray }).toEqual({ runId, stray: [] });
      cutOff.push(...attempts.filter(({ error }) => error === 'interrupted'));
    }
    // What was cut off was under way when the node was stopped.
    const wasUnderWay = ({ startedAt }: AttemptRecord): boolean =>
      pauses.some(({ stoppedAt }) => startedAt <= stoppedAt && startedAt > stoppedAt - ATTEMPT_MS - SLACK_MS);
    expect(cutOff.filter(attempt => !wasUnderWay(attempt))).toEqual([]);
    expect(cutOff.length).toBeGreaterThan(0);
    expect(cutOff.length).toBeLessThanOrEqual(PAUSES * PER_TARGET);
  });
});
