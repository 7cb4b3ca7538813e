/** What a node gathers for those who follow, when it tells it, and when it has nothing to do. */
import { describe, expect, it } from 'vitest';
import type { Database } from '../../../src/store/postgres/connection.ts';
import { createFollowing } from '../../../src/store/postgres/following.ts';
import { ManualClock } from '../../support/clock.ts';

function rig() {
  const clock = new ManualClock();
  const told: (readonly string[])[] = [];
  const connection = { works: true };
  const listening: boolean[] = [];
  const statements: string[] = [];
  const database = {
    query: ({ text }: { text: string }) => {
      statements.push(text.trim().split(' ')[0]!);
      return Promise.resolve();
    },
  } as unknown as Database;
  const following = createFollowing({
    database,
    clock,
    nodeId: 'node',
    listen: wanted => listening.push(wanted),
    async tell(messages) {
      told.push(messages);
      if (!connection.works) throw new Error('no connection');
    },
  });
  /** By a node elsewhere, and this one has seen it. */
  const beFollowed = async () => {
    following.heed(true);
    clock.advance(0);
    await settle();
    told.length = 0;
  };
  return { clock, told, connection, listening, statements, following, beFollowed };
}

const runIds = (count: number) => Array.from({ length: count }, (_, i) => `run-${i}`);

/** Lets what was told come back. */
const settle = () => new Promise<void>(resolve => setImmediate(resolve));

describe('what has changed', () => {
  it('is nothing to a node while nobody follows', () => {
    const { clock, following } = rig();
    following.changed('run');
    following.muchChanged();
    expect(clock.waiting).toBe(0);
  });

  it('is gathered while somebody follows elsewhere, and each told once', async () => {
    const { clock, told, following, beFollowed } = rig();
    await beFollowed();
    for (const runId of ['a', 'b', 'a']) following.changed(runId);
    expect(told).toEqual([]);
    clock.advance(200);
    expect(told).toEqual([['a,b']]);
    await settle();
    following.changed('c');
    clock.advance(200);
    expect(told[1]).toEqual(['c']);
    await settle();
    following.heed(false);
    following.changed('d');
    expect(clock.waiting).toBe(0);
  });

  it('is told as much by a node that has not known of followers until now', async () => {
    const { clock, told, following } = rig();
    following.changed('a');
    following.heed(true);
    clock.advance(0);
    expect(told).toEqual([['']]);
    await settle();
    following.heed(true);
    expect(clock.waiting).toBe(0);
  });

  it('is told in messages that are not too long', async () => {
    const { clock, told, following, beFollowed } = rig();
    await beFollowed();
    const ids = Array.from({ length: 450 }, (_, i) => `${i}`.padStart(36, '0'));
    ids.forEach(id => following.changed(id));
    clock.advance(200);
    expect(told[0]!.map(message => message.length < 7_900)).toEqual([true, true, true]);
    expect(told[0]!.join(',').split(',')).toEqual(ids);
  });

  it.each([
    ['there is more than can be told', 5_000, 0],
    ['it is not known what', 3, 1],
  ])('is told as much where %s', async (_, changes, unknown) => {
    const { clock, told, following, beFollowed } = rig();
    await beFollowed();
    runIds(changes).forEach(runId => following.changed(runId));
    if (unknown > 0) following.muchChanged();
    clock.advance(200);
    expect(told).toEqual([['']]);
  });

  it('is told as much later where it could not be told', async () => {
    const { clock, told, connection, following, beFollowed } = rig();
    await beFollowed();
    connection.works = false;
    following.changed('a');
    clock.advance(200);
    await settle();
    connection.works = true;
    following.changed('b');
    clock.advance(1_000);
    expect(told).toEqual([['a'], ['']]);
  });

  it('waits while the last is being told', async () => {
    const { clock, told, following, beFollowed } = rig();
    await beFollowed();
    following.changed('a');
    clock.advance(200);
    following.changed('b');
    expect(clock.waiting).toBe(0);
    await settle();
    clock.advance(200);
    expect(told).toEqual([['a'], ['b']]);
  });
});

describe('those who follow', () => {
  it('hear what is told, and that they are to look at everything', async () => {
    const { clock, following } = rig();
    const heard: unknown[] = [];
    const follow = following.follow(ids => heard.push(ids));
    following.hear('a,b');
    following.hear('');
    clock.advance(1_000);
    (await follow)();
    following.hear('c');
    expect(heard).toEqual([['a', 'b'], []]);
  });

  it('are told so once every node has had the time to see it', async () => {
    const { clock, following } = rig();
    let complete = 0;
    const follow = () => following.follow(() => {}).then(() => (complete += 1));
    const follows = [follow(), follow()];
    clock.advance(900);
    await settle();
    expect(complete).toBe(0);
    clock.advance(200);
    await Promise.all(follows);
    await follow();
    expect(complete).toBe(3);
  });

  it('make their node say so, again and again, until the last of them is gone', async () => {
    const { clock, listening, statements, following } = rig();
    const follows = [following.follow(() => {}), following.follow(() => {})];
    clock.advance(3_000);
    const ends = await Promise.all(follows);
    expect([listening, statements]).toEqual([[true], ['WITH', 'WITH']]);
    ends[0]!();
    ends[0]!();
    expect(listening).toEqual([true]);
    ends[1]!();
    expect([listening, statements]).toEqual([
      [true, false],
      ['WITH', 'WITH', 'DELETE'],
    ]);
    expect(clock.waiting).toBe(0);
  });

  it('leave nothing behind in a store that closes', async () => {
    const { clock, following } = rig();
    const follow = following.follow(() => {});
    following.changed('a');
    following.stop();
    following.changed('b');
    expect(clock.waiting).toBe(0);
    (await follow)();
  });
});
