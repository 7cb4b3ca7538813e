/**
 * The same for services of several processes: with the embedded store, which the primary has, and with a
 * database, which it looks into as a node of its own.
 */
import { expect, it, onTestFinished, vi } from 'vitest';
import { Stats } from '../../src/api/stats-contract.ts';
import { openApp } from '../support/app.ts';
import { configureNode } from '../support/nodes.ts';
import { createDatabase } from '../support/postgres.ts';
import { configure } from '../support/process.ts';
import { testToken } from '../support/service.ts';
import { serveWorkers } from '../support/workers.ts';
import { steer } from './steering.ts';

vi.setConfig({ testTimeout: 120_000 }); // three processes and more to start, and numbers that come every 10 s

it.each([
  ['the embedded store', async () => configure],
  [
    'a database',
    async () => {
      const database = await createDatabase();
      return (settings: Parameters<typeof configure>[0] = {}) => configureNode(database, settings);
    },
  ],
])(
  'two workers with %s are seen and steered as one',
  async (_, prepare) => {
    const app = await openApp((_req, res) => res.end('done'));
    onTestFinished(() => app.close());
    const configured = await prepare();
    const place = configured({ apps: { app: { runtime: 'custom', url: app.url } }, more: { workers: 2 } });
    const { service, addresses } = await serveWorkers(place);
    await steer({ ...addresses, token: await testToken() });
    const calls = async (): Promise<number> => {
      const answer = await fetch(`${addresses.admin}/api/v1/stats`);
      return Stats.parse(await answer.json()).totals.calls;
    };
    await expect.poll(calls, { timeout: 30_000, interval: 200 }).toBe(7);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  },
  180_000,
);
