/**
 * Functions that are cancelled while many of them run: each sees its signal, and its place is free for the next.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { openInbox } from '../support/inbox.ts';
import { configure, serve } from '../support/process.ts';
import { PROJECT, testToken } from '../support/service.ts';

const [REPLICAS, CONCURRENCY] = [2, 25];
const PLACES = REPLICAS * CONCURRENCY;
const SOON = { timeout: 20_000, interval: 10 };
const ENTRY = join(import.meta.dirname, 'holding-function.ts');

interface Rig {
  /** Calls the function, and gives the id of its run. */
  call(): Promise<string>;
  /** Gives the state in which the run then is. */
  cancel(runId: string): Promise<string>;
  /** Runs that have begun, or that have seen their signal. */
  runsThat(what: 'begun' | 'aborted'): string[];
  stop(): Promise<unknown>;
}

async function open(target: string): Promise<Rig> {
  const folder = temporaryDirectory();
  const held = { runtime: 'cortex', entry: ENTRY, replicas: REPLICAS, concurrency: CONCURRENCY } as const;
  const service = serve(configure({ apps: { held } }));
  const { base } = await service.ready;
  const headers = { authorization: `Bearer ${await testToken()}` };
  const post = async (path: string, body = ''): Promise<{ run_id: string; state: string }> => {
    const answer = await fetch(`${base}/v4/${PROJECT}/${path}`, { method: 'POST', headers, body });
    expect([200, 202]).toContain(answer.status);
    return (await answer.json()) as { run_id: string; state: string };
  };
  const query = `async=true&webhookEndpoint=${encodeURIComponent(target)}`;
  return {
    call: async () => (await post(`held/hold?${query}`, JSON.stringify({ folder }))).run_id,
    cancel: async runId => (await post(`_runs/${runId}/cancel`)).state,
    runsThat: what =>
      readdirSync(folder).flatMap(file => (file.endsWith(`.${what}`) ? file.slice(0, -what.length - 1) : [])),
    stop: () => service.stop(),
  };
}

describe('running functions that are cancelled', () => {
  it(`${PLACES} at once: each sees its signal, and its place is taken by the next`, async () => {
    const inbox = await openInbox();
    onTestFinished(() => inbox.close());
    const rig = await open(inbox.url);
    const accepted = await Promise.all(Array.from({ length: 2 * PLACES }, () => rig.call()));
    await vi.waitFor(() => expect(rig.runsThat('begun')).toHaveLength(PLACES), SOON);

    const first = rig.runsThat('begun');
    const states = await Promise.all(first.map(runId => rig.cancel(runId)));
    expect(new Set(states)).toEqual(new Set(['cancelled']));
    await vi.waitFor(() => expect(rig.runsThat('aborted').toSorted()).toEqual(first.toSorted()), SOON);

    await vi.waitFor(() => expect(rig.runsThat('begun').toSorted()).toEqual(accepted.toSorted()), SOON);
    const second = accepted.filter(runId => !first.includes(runId));
    await Promise.all(second.map(runId => rig.cancel(runId)));
    await vi.waitFor(() => expect(rig.runsThat('aborted').toSorted()).toEqual(accepted.toSorted()), SOON);

    const deliveries = await inbox.count(2 * PLACES);
    expect(deliveries.map(({ runId }) => runId).toSorted()).toEqual(accepted.toSorted());
    for (const { body } of deliveries) {
      expect(JSON.parse(body.toString())).toMatchObject({ status_code: 499, error: { type: 'cancelled' } });
    }
    expect(await rig.stop()).toEqual({ code: 0, signal: null });
  });
});
