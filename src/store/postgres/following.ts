/**
 * Tells those who follow, on whatever node, which deliveries have changed. A node on which somebody follows says
 * so in a table, again and again; the others see it when they look, and only then gather what they change, and
 * tell it by NOTIFY. When they cannot tell all of it one by one, or may have changed something before they saw
 * that somebody follows, they say that much has changed: an empty message.
 */
import type { Clock } from '../../clock.ts';
import type { Bell } from './bell.ts';
import type { Database, Statement } from './connection.ts';
import { LEASE } from './lease.ts';

const GATHER_MS = 200;
const AGAIN_MS = 1_000;
const RENEW_MS = 3_000;
const UNTIL_SECONDS = 10;
/** By then all nodes have looked, and told what came of it. */
const KNOWN_MS = 2 * LEASE.look;
/** Of those gathered at a time; beyond that, much has changed. */
const MOST = 4_000;
/** A message has at most 8,000 bytes. */
const IDS_IN_MESSAGE = 200;
const SEPARATOR = ',';

const RENEW: Statement = {
  text: `
    WITH gone AS (DELETE FROM afterword_followers WHERE until < clock_timestamp() AND node <> $1::text)
    INSERT INTO afterword_followers (node, until)
    VALUES ($1::text, clock_timestamp() + interval '${UNTIL_SECONDS} seconds')
    ON CONFLICT (node) DO UPDATE SET until = excluded.until`,
};

const LEAVE: Statement = { text: 'DELETE FROM afterword_followers WHERE node = $1::text' };

export type Follower = (runIds: readonly string[]) => void;

export interface Following {
  follow(follower: Follower): Promise<() => void>;
  /** This node has changed something of a delivery. */
  changed(runId: string): void;
  /** This node has changed so many that it does not know which. */
  muchChanged(): void;
  /** Whether anybody follows, on whatever node. */
  heed(followed: boolean): void;
  /** What some node told. */
  hear(message: string): void;
  stop(): void;
}

export interface FollowingOptions {
  readonly database: Database;
  readonly tell: Bell['tell'];
  /** Whether what is told is to be heard here. */
  readonly listen: Bell['hear'];
  readonly clock: Clock;
  readonly nodeId: string;
}

export function createFollowing({ database, tell, listen, clock, nodeId }: FollowingOptions): Following {
  const followers = new Set<Follower>();
  const gathered = new Set<string>();
  let followed = false;
  let much = false;
  let cancelTelling: (() => void) | undefined;
  let cancelRenewal = () => {};
  /** All nodes have had the time to see that this one follows. */
  let known = Promise.resolve();
  let endWaiting = () => {};

  const isFollowed = () => followed || followers.size > 0;

  function tellSoon(ms: number): void {
    cancelTelling ??= clock.after(ms, () => void tellNow());
  }

  async function tellNow(): Promise<void> {
    const messages = much ? [''] : messagesOf([...gathered]);
    gathered.clear();
    much = false;
    try {
      await tell(messages);
      cancelTelling = undefined;
      if (gathered.size > 0 || much) tellSoon(GATHER_MS);
    } catch {
      cancelTelling = undefined;
      much = isFollowed();
      if (much) tellSoon(AGAIN_MS);
    }
  }

  function renew(): void {
    database.query(RENEW, [nodeId]).catch(() => {}); // the next one will do
    cancelRenewal = clock.after(RENEW_MS, renew);
  }

  function untilKnown(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(KNOWN_MS, resolve);
    endWaiting = () => {
      cancel();
      resolve();
    };
    return promise;
  }

  function unfollow(follower: Follower): void {
    if (!followers.delete(follower) || followers.size > 0) return;
    cancelRenewal();
    listen(false);
    database.query(LEAVE, [nodeId]).catch(() => {}); // it ends by itself
  }

  return {
    async follow(listener) {
      const follower: Follower = runIds => listener(runIds); // one may follow twice
      followers.add(follower);
      if (followers.size === 1) {
        listen(true);
        renew();
        known = untilKnown();
      }
      await known;
      return () => unfollow(follower);
    },
    changed(runId) {
      if (!isFollowed()) return;
      gathered.add(runId);
      if (gathered.size > MOST) much = true;
      if (much) gathered.clear();
      tellSoon(GATHER_MS);
    },
    muchChanged() {
      if (!isFollowed()) return;
      much = true;
      tellSoon(GATHER_MS);
    },
    heed(anybody) {
      const news = anybody && !isFollowed();
      followed = anybody;
      if (!news) return;
      much = true;
      tellSoon(0);
    },
    hear(message) {
      const runIds = message === '' ? [] : message.split(SEPARATOR);
      for (const follower of followers) follower(runIds);
    },
    stop() {
      cancelTelling?.();
      cancelRenewal();
      endWaiting();
      followers.clear();
      followed = false;
    },
  };
}

function messagesOf(runIds: readonly string[]): string[] {
  const count = Math.ceil(runIds.length / IDS_IN_MESSAGE);
  return Array.from({ length: count }, (_, i) =>
    runIds.slice(i * IDS_IN_MESSAGE, (i + 1) * IDS_IN_MESSAGE).join(SEPARATOR),
  );
}
