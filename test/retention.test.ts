/**
 * Deliveries and runs that ended longer ago than their retention are deleted, a little at a time; what is spooled of them
 * goes as well.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../src/log.ts';
import { createRetention } from '../src/retention.ts';
import { ManualClock } from './support/clock.ts';
import { openInbox } from './support/inbox.ts';
import { startService } from './support/service.ts';
import { openStage } from './support/stage.ts';
import { until } from './support/waiting.ts';

const DAY = 24 * 3_600_000;

/** A store that has `deletable` deliveries, or runs, to delete, or fails. */
function prunable(
  deletable: number,
  what: 'deliveries' | 'runs' = 'deliveries',
): {
  clock: ManualClock;
  asked: Array<{ before: number; limit: number }>;
  retention: ReturnType<typeof createRetention>;
  logs: () => string;
  fail: (error: Error | undefined) => void;
} {
  const clock = new ManualClock();
  const asked: Array<{ before: number; limit: number }> = [];
  let left = deletable;
  let failure: Error | undefined;
  let logs = '';
  const log = createLogger({ level: 'debug', destination: { write: line => (logs += line) } });
  const prune = async (before: number, limit: number): Promise<number> => {
    asked.push({ before, limit });
    if (failure !== undefined) throw failure;
    const deleted = Math.min(limit, left);
    left -= deleted;
    return deleted;
  };
  return {
    clock,
    asked,
    retention: createRetention({
      store: what === 'deliveries' ? { prune, runs: nothing } : { ...nothing, runs: { prune } },
      clock,
      log,
      config: { webhooks: { retention: DAY }, async: { retention: DAY } },
    }),
    logs: () => logs,
    fail: error => {
      failure = error;
    },
  };
}

const nothing = { prune: async () => 0 };

/** Moves the clock to the next look, and lets that end. */
async function look(clock: ManualClock): Promise<number> {
  await until(() => clock.nextIn !== undefined);
  const wait = clock.nextIn!;
  clock.advance(wait);
  await until(() => clock.nextIn !== undefined);
  return wait;
}

describe('retention', () => {
  it.each(['deliveries', 'runs'] as const)(
    'asks for %s that ended before the time, in batches',
    async what => {
      const { clock, asked, retention } = prunable(450, what);
      retention.start();
      const waits = [await look(clock), await look(clock), await look(clock), await look(clock)];
      expect(asked.map(({ limit }) => limit)).toEqual([200, 200, 200, 200]);
      expect(asked.at(-1)!.before).toBe(clock.now() - DAY);
      // Soon while there is more, at leisure once there is not.
      expect(Math.max(...waits.slice(0, 3))).toBeLessThan(1_000);
      expect(waits[3]).toBeGreaterThanOrEqual(60_000);
      retention.stop();
    },
  );

  it('logs a failure and tries again later', async () => {
    const { clock, asked, retention, logs, fail } = prunable(0);
    fail(new Error('disk I/O error'));
    retention.start();
    await look(clock);
    expect(logs()).toContain('disk I/O error');
    fail(undefined);
    await look(clock);
    expect(asked).toHaveLength(2);
    retention.stop();
  });

  it('does nothing more once it is stopped', async () => {
    const { clock, asked, retention } = prunable(1_000);
    retention.start();
    await look(clock);
    retention.stop();
    clock.advance(10 * DAY);
    expect(asked).toHaveLength(1);
    expect(clock.waiting).toBe(0);
  });

  it('neither waits nor complains when it is stopped while the store cannot delete', async () => {
    const { clock, asked, retention, logs, fail } = prunable(0);
    fail(new Error('the store closed'));
    retention.start();
    clock.advance(clock.nextIn!);
    retention.stop();
    await until(() => asked.length === 1);
    await Promise.resolve();
    expect(logs()).toBe('');
    expect(clock.waiting).toBe(0);
  });

  it('takes the spooled answers of what it deletes along', async () => {
    const data = await mkdtemp(join(tmpdir(), 'afterword-'));
    onTestFinished(() => rm(data, { recursive: true, force: true }));
    const [app, inbox] = [await openStage(), await openInbox()];
    const path = app.play((_req, res) => res.end(Buffer.alloc(300_000)));
    const options = { data, apps: { web: { runtime: 'custom', url: app.url } } } as const;
    const first = await startService(options);
    const answer = await fetch(first.base + first.path(`web/${path}`, inbox.url), {
      headers: { authorization: `Bearer ${first.token}` },
    });
    await answer.arrayBuffer();
    await inbox.of(answer.headers.get('x-request-id')!);
    await first.stop();
    expect(await readdir(join(data, 'spool'))).toHaveLength(1);
    const second = await startService({ ...options, webhooks: { retention: 1 } });
    await until(async () => (await readdir(join(data, 'spool'))).length === 0);
    await second.stop();
    await inbox.close();
    await app.close();
  });
});
