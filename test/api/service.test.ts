/**
 * A running service, seen and steered over HTTP; and its numbers, which outlive it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Stats } from '../../src/api/stats-contract.ts';
import { openApp } from '../support/app.ts';
import { startService } from '../support/service.ts';
import { steer } from './steering.ts';

it('a service can be seen and steered, and remembers what it counted', async () => {
  const data = await mkdtemp(join(tmpdir(), 'afterword-'));
  const app = await openApp((_req, res) => res.end('done'));
  const start = () => startService({ data, apps: { app: { runtime: 'custom', url: app.url } } });
  const service = await start();
  await steer(service);
  await fetch(`${service.base}/v4/p-test/app/`);
  await service.stop();

  const again = await start();
  const stats = Stats.parse(await (await fetch(`${again.admin}/api/v1/stats`)).json());
  // 7 calls with a webhook; one without a token is nobody's. The rounds by hand end as well.
  expect(stats.totals).toMatchObject({ calls: 7, call_errors: 0, made: 7, delivered: 7, failed: 6 });
  expect(stats.totals.p50_ms).toBeGreaterThan(0);
  expect(stats.failing_hosts).toMatchObject([{ failures: expect.toSatisfy((count: number) => count >= 7) }]);
  expect(stats.backlog).toEqual({ pending: 0 });
  await again.stop();
  await app.close();
  await rm(data, { recursive: true, force: true });
});
