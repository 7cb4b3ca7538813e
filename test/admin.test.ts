/**
 * The admin listener: alive, ready, and what has been counted, for those who may see it. No URL, host,
 * project or id becomes a label.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAdmin, type Readiness } from '../src/admin.ts';
import { createMetrics } from '../src/metrics.ts';
import { openInbox } from './support/inbox.ts';
import { startService } from './support/service.ts';
import { openStage } from './support/stage.ts';

const TOKEN = 'a token for the admin';

let url: string;
let obstacle: ReturnType<Readiness>;
const metrics = createMetrics({
  size: () => ({ held: 3, waiting: 2, inFlight: 1 }),
  storeAvailable: () => true,
  runsHeld: () => 0,
});
const admin = createAdmin({ token: TOKEN, metrics, readiness: () => obstacle });

beforeAll(async () => {
  url = `http://127.0.0.1:${(await admin.listen({ host: '127.0.0.1', port: 0 })).port}`;
});
afterAll(() => admin.stop());

async function get(
  path: string,
  init: RequestInit = {},
): Promise<{ status: number; text: string; headers: Headers }> {
  const response = await fetch(url + path, init);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

describe('the admin listener', () => {
  it('says that the process is alive, whatever else', async () => {
    obstacle = 'store_unavailable';
    expect(await get('/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
    obstacle = undefined;
  });

  it.each([
    [undefined, 200, 'ready\n'],
    ['starting', 503, 'starting\n'],
    ['stopping', 503, 'stopping\n'],
    ['store_unavailable', 503, 'store_unavailable\n'],
  ] as const)('says whether it is ready (%s)', async (reason, status, text) => {
    obstacle = reason;
    expect(await get('/readyz?verbose')).toMatchObject({ status, text });
    obstacle = undefined;
  });

  it('shows metrics to who has the token, and to nobody else', async () => {
    for (const authorization of [undefined, '', TOKEN, `Bearer ${TOKEN}x`, `bearer  ${TOKEN}`, 'Bearer']) {
      const headers = authorization === undefined ? {} : { authorization };
      const refused = await get('/metrics', { headers });
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(refused.text).not.toContain('afterword_');
    }
    const shown = await get('/metrics', { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(shown.status).toBe(200);
    expect(shown.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(shown.text).toContain('\nafterword_deliveries_held 3\n');
    expect(shown.text).toContain('\nafterword_attempts_in_flight 1\n');
  });

  it('shows metrics to all where there is no token', async () => {
    const open = createAdmin({ token: undefined, metrics, readiness: () => undefined });
    const { port } = await open.listen({ host: '127.0.0.1', port: 0 });
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
    await open.stop();
  });

  it('knows GET and HEAD, and no other path', async () => {
    expect(await get('/healthz', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    const posted = await get('/healthz', { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await get('/')).status).toBe(404);
  });

  it('tells the operator when its port is taken', async () => {
    const other = createAdmin({ token: TOKEN, metrics, readiness: () => undefined });
    const port = Number(new URL(url).port);
    await expect(other.listen({ host: '127.0.0.1', port })).rejects.toThrow(/the port is taken/);
    await other.stop();
  });
});

describe('the metrics of a service', () => {
  it('count calls, attempts and deliveries, and hold no URL, host, project or id', async () => {
    const app = await openStage();
    const inbox = await openInbox(({ path }) => (path.includes('bad') ? 400 : 200));
    const service = await startService({ apps: { 'app-name': { runtime: 'custom', url: app.url } } });
    const path = app.play((_req, res) => res.end('x'));
    const headers = { authorization: `Bearer ${service.token}` };
    const runIds: string[] = [];
    for (const target of [undefined, inbox.url, `${inbox.url}/bad`]) {
      const answer = await fetch(service.base + service.path(`app-name/${path}`, target), { headers });
      runIds.push(answer.headers.get('x-request-id')!);
      await answer.text();
    }
    await fetch(`${service.base}/v4/p-test/app-name/x`);
    await inbox.count(2);
    const read = async (): Promise<string> => (await fetch(`${service.admin}/metrics`)).text();
    await expect.poll(read).toMatch(/deliveries_settled_total\{state="failed",reason="rejected"\} 1/);
    await expect.poll(read).toMatch(/deliveries_settled_total\{state="delivered",reason="none"\} 1/);
    const text = await read();
    for (const line of [
      'afterword_calls_total{runtime="custom",status="2xx",webhook="no"} 1',
      'afterword_calls_total{runtime="custom",status="2xx",webhook="yes"} 2',
      'afterword_calls_total{runtime="none",status="4xx",webhook="no"} 1',
      'afterword_attempts_total{outcome="2xx"} 1',
      'afterword_attempts_total{outcome="4xx"} 1',
      'afterword_commit_duration_seconds_count 2',
      'afterword_store_available 1',
    ]) {
      expect(text).toContain(`\n${line}\n`);
    }
    for (const secret of [...runIds, '127.0.0.1', 'http:', 'p-test', 'app-name', '/hook']) {
      expect(text).not.toContain(secret);
    }
    await service.stop();
    await inbox.close();
    await app.close();
  });
});
