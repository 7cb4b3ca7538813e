/**
 * A disk that fills up under load: calls with a webhook are refused before their app runs, calls without go
 * on, and once there is room everything recovers by itself, with nothing lost that was acknowledged.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { mountTmpfs } from '../store/sqlite/tmpfs.ts';
import { openApp, readText } from '../support/app.ts';
import { callRaw, type RawAnswer } from '../support/caller.ts';
import { type Inbox, openInbox } from '../support/inbox.ts';
import { startLoad } from '../support/load.ts';
import { type Addresses, configure, type Place, readMetric, serve } from '../support/process.ts';
import { PROJECT, testToken } from '../support/service.ts';

const MIB = 1024 * 1024;
const SOON = { timeout: 20_000, interval: 50 };

/** Where mounting must be possible, not being able to is a failure. */
function mountSmallDisk(skip: (condition: boolean, note: string) => void): string {
  const dir = temporaryDirectory();
  const mounted = mountTmpfs(dir, 'size=128m');
  const mustMount = process.env['CI'] === 'true' && process.getuid?.() === 0;
  if (!mounted && mustMount) throw new Error('a small file system could not be mounted');
  skip(!mounted, 'needs to mount a small file system, which is not permitted here');
  return dir;
}

/** Takes the last free byte, whoever else writes; the returned function gives them all back. */
function fill(dir: string): () => void {
  const filler = join(dir, 'filler');
  const block = Buffer.alloc(MIB);
  for (let size = block.length; size >= 1; ) {
    try {
      appendFileSync(filler, block.subarray(0, size));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      size /= 4;
    }
  }
  return () => rmSync(filler);
}

interface Rig {
  readonly place: Place;
  readonly inbox: Inbox;
  /** The paths that the app has been asked for. */
  readonly asked: ReadonlySet<string>;
}

async function prepare(dir: string): Promise<Rig> {
  const asked = new Set<string>();
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    asked.add(req.url!);
    const { size = 10 } = JSON.parse((await readText(req)) || '{}') as { size?: number };
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify({ fill: 'x'.repeat(size) }));
  };
  const app = await openApp((req, res) => void answer(req, res));
  onTestFinished(() => app.close());
  const inbox = await openInbox();
  onTestFinished(() => inbox.close());
  const apps = {
    custom: { runtime: 'custom', url: app.url },
    cortex: { runtime: 'cortex', url: app.url },
  } as const;
  return { place: configure({ apps, more: { data: join(dir, 'data') } }), inbox, asked };
}

/** One call on a path of its own. */
async function callOnce({ port }: Addresses, target?: string): Promise<{ path: string; answer: RawAnswer }> {
  const path = `/${randomUUID()}`;
  const query = target === undefined ? '' : `?webhookEndpoint=${encodeURIComponent(target)}`;
  const answer = await callRaw({
    port,
    path: `/v4/${PROJECT}/custom${path}${query}`,
    headers: [`Authorization: Bearer ${await testToken()}`],
  });
  return { path, answer };
}

async function untilReadiness({ admin }: Addresses, status: number): Promise<void> {
  await vi.waitFor(async () => expect((await fetch(`${admin}/readyz`)).status).toBe(status), SOON);
}

/** With a webhook it is refused before the app hears of it, without one it is served. */
async function expectOnlyPlainCalls(rig: Rig, addresses: Addresses): Promise<void> {
  const refused = await callOnce(addresses, rig.inbox.url);
  expect(refused.answer.status).toBe(503);
  expect(JSON.parse(refused.answer.body.toString())).toMatchObject({ code: 'store_unavailable' });
  expect(rig.asked.has(refused.path)).toBe(false);
  const served = await callOnce(addresses);
  expect(served.answer.status).toBe(200);
  expect(rig.asked.has(served.path)).toBe(true);
}

async function expectDelivered({ inbox }: Rig, runIds: readonly string[]): Promise<void> {
  const missing = (): string[] => {
    const received = new Set(inbox.received.map(({ runId }) => runId));
    return runIds.filter(runId => !received.has(runId));
  };
  await vi.waitFor(() => expect(missing()).toEqual([]), SOON);
}

describe('a disk that is full', () => {
  it('costs calls with a webhook alone, and nothing that was acknowledged', async ({ skip }) => {
    const dir = mountSmallDisk(skip);
    const rig = await prepare(dir);
    const service = serve(rig.place);
    const addresses = await service.ready;
    const load = startLoad({ token: await testToken(), target: rig.inbox.url });
    load.aim(addresses.port);
    await vi.waitUntil(() => load.answers.length > 100, SOON);

    const free = fill(dir);
    await untilReadiness(addresses, 503);
    await vi.waitUntil(() => load.answers.some(({ status }) => status === 503), SOON);
    await expectOnlyPlainCalls(rig, addresses);
    expect(await readMetric(addresses, 'store_available')).toBe(0);

    free();
    await untilReadiness(addresses, 200);
    const before = load.answers.length;
    await vi.waitUntil(
      () => load.answers.slice(before).filter(({ status }) => status === 200).length > 50,
      SOON,
    );
    const answers = await load.stop();
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
    await expectDelivered(
      rig,
      answers.filter(({ status }) => status === 200).map(({ runId }) => runId),
    );
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });

  it('keeps the service from starting, and says so; with a little room it starts', async ({ skip }) => {
    const dir = mountSmallDisk(skip);
    const rig = await prepare(dir);
    const first = serve(rig.place);
    const kept = await callOnce(await first.ready, rig.inbox.url);
    await first.kill();

    const free = fill(dir);
    const refused = serve(rig.place);
    expect(await refused.ended).toEqual({ code: 1, signal: null });
    expect(refused.stderr).toMatch(/^error: the database .* disk is full/);

    // Enough for what is there already, less than is wanted for more.
    truncateSync(join(dir, 'filler'), statSync(join(dir, 'filler')).size - 16 * MIB);
    const service = serve(rig.place);
    const addresses = await service.listening;
    await untilReadiness(addresses, 503);
    await expectOnlyPlainCalls(rig, addresses);
    await expectDelivered(rig, [kept.answer.header('x-request-id')!]);
    free();
    await untilReadiness(addresses, 200);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  });
});
