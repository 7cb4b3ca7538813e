/**
 * The admin listener: alive, ready, and what has been counted, for those who may see it. No URL, host,
 * project or id becomes a label.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Readiness } from '../src/admin.ts';
import { ADMIN_TOKEN, adminWith, openAdmin, outcome, PROJECT, PROJECT_TOKEN, send } from './support/admin.ts';
import { openInbox } from './support/inbox.ts';
import { captureLog } from './support/log.ts';
import { startService } from './support/service.ts';
import { openStage } from './support/stage.ts';

let url: string;
let obstacle: ReturnType<Readiness>;
const logged = captureLog();
const admin = adminWith({ readiness: () => obstacle, log: logged.log });

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
    const WRONG = [undefined, '', ADMIN_TOKEN, `Bearer ${ADMIN_TOKEN}x`, `bearer  ${ADMIN_TOKEN}`, 'Bearer'];
    for (const authorization of WRONG) {
      const headers = authorization === undefined ? {} : { authorization };
      const refused = await get('/metrics', { headers });
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(refused.text).not.toContain('afterword_');
    }
    const shown = await get('/metrics', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    expect(shown.status).toBe(200);
    expect(shown.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(shown.text).toContain('\nafterword_deliveries_held 3\n');
    expect(shown.text).toContain('\nafterword_attempts_in_flight 1\n');
  });

  it('shows metrics to all where there is no token', async () => {
    const open = await openAdmin({ adminToken: undefined });
    for (const headers of [{}, { authorization: 'Bearer of something before it' }]) {
      expect((await fetch(`${open}/metrics`, { headers })).status).toBe(200);
    }
  });

  it('knows GET and HEAD, and no other path', async () => {
    expect(await get('/healthz', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    const posted = await get('/healthz', { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await get('/nonsense')).status).toBe(404);
  });

  it('tells the operator when its port is taken', async () => {
    const other = adminWith({});
    const port = Number(new URL(url).port);
    await expect(other.listen({ host: '127.0.0.1', port })).rejects.toThrow(/the port is taken/);
    await other.stop();
  });
});

describe('the API on the admin listener', () => {
  const API = '/api/v1/deliveries';
  const asked = async (base: string, headers: Record<string, string>): Promise<[number, string]> =>
    outcome(await send(base + API, { headers }));

  it('is for holders of the admin token, or of a project’s, each with what is theirs', async () => {
    const { host } = new URL(url);
    const cases: readonly [Record<string, string>, [number, string]][] = [
      [{ authorization: `Bearer ${ADMIN_TOKEN}` }, [200, 'all']],
      [{ authorization: PROJECT_TOKEN }, [200, PROJECT]],
      [{ authorization: `${PROJECT_TOKEN}x` }, [401, 'unauthorized']],
      [{ authorization: `Bearer ${ADMIN_TOKEN}x` }, [401, 'unauthorized']],
      [{ authorization: ADMIN_TOKEN }, [401, 'unauthorized']],
      [{ authorization: 'Bearer' }, [401, 'unauthorized']],
      [{}, [401, 'unauthorized']],
      [{ authorization: `Bearer ${ADMIN_TOKEN}`, origin: `http://${host}` }, [200, 'all']],
      [
        { authorization: `Bearer ${ADMIN_TOKEN}`, origin: 'http://elsewhere.example' },
        [403, 'foreign_origin'],
      ],
      [{ authorization: `Bearer ${ADMIN_TOKEN}`, origin: 'null' }, [403, 'foreign_origin']],
      [{ authorization: `Bearer ${ADMIN_TOKEN}`, host: 'admin.example' }, [200, 'all']],
    ];
    for (const [headers, answer] of cases)
      expect([headers, await asked(url, headers)]).toEqual([headers, answer]);
  });

  it('is for everybody on the machine where there is no admin token, but for no web page', async () => {
    const base = await openAdmin({ adminToken: undefined });
    const { port } = new URL(base);
    const cases: readonly [Record<string, string>, [number, string]][] = [
      [{}, [200, 'all']],
      [{ host: `localhost:${port}` }, [200, 'all']],
      [{ host: `[::1]:${port}` }, [200, 'all']],
      [{ authorization: PROJECT_TOKEN }, [200, PROJECT]],
      [{ authorization: 'Bearer x' }, [401, 'unauthorized']],
      [{ origin: 'https://elsewhere.example' }, [403, 'foreign_origin']],
      [{ host: 'rebound.example', origin: 'http://rebound.example' }, [403, 'foreign_origin']],
      [{ host: 'rebound.example' }, [403, 'foreign_origin']],
    ];
    for (const [headers, answer] of cases)
      expect([headers, await asked(base, headers)]).toEqual([headers, answer]);
  });

  it('logs what is done, with its outcome, and neither a token nor a query', async () => {
    const before = logged.lines.length;
    await get(`${API}?app=x`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    await get(API, { method: 'DELETE' });
    await vi.waitFor(
      () =>
        expect(logged.lines.slice(before).filter(({ level }) => level === 'info')).toMatchObject([
          { msg: 'admin request', method: 'POST', path: API, status: 200 },
          { msg: 'admin request', method: 'DELETE', path: API, status: 401 },
        ]),
      10_000,
    );
    expect(JSON.stringify(logged.lines)).not.toMatch(/app=x|a token for/);
  });

  it('tells a stranger what is wanted, and nothing else', async () => {
    const { status, headers, text } = await get(API);
    expect([status, headers.get('content-type')]).toEqual([401, 'application/problem+json']);
    expect(headers.get('www-authenticate')).toBe('Bearer realm="afterword admin"');
    expect(JSON.parse(text)).toMatchObject({ run_id: headers.get('x-request-id') });
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
    const told = [
      'afterword_deliveries_settled_total{state="failed",reason="rejected"} 1',
      'afterword_deliveries_settled_total{state="delivered",reason="none"} 1',
      'afterword_calls_total{runtime="custom",status="2xx",webhook="no",async="no"} 1',
      'afterword_calls_total{runtime="custom",status="2xx",webhook="yes",async="no"} 2',
      'afterword_calls_total{runtime="none",status="4xx",webhook="no",async="no"} 1',
      'afterword_attempts_total{outcome="2xx"} 1',
      'afterword_attempts_total{outcome="4xx"} 1',
      'afterword_commit_duration_seconds_count 2',
      'afterword_store_available 1',
    ];
    const missing = async (): Promise<string[]> => {
      const text = await read();
      return told.filter(line => !text.includes(`\n${line}\n`));
    };
    await expect.poll(missing).toEqual([]);
    const text = await read();
    for (const secret of [...runIds, '127.0.0.1', 'http:', 'p-test', 'app-name', '/hook']) {
      expect(text).not.toContain(secret);
    }
    await service.stop();
    await inbox.close();
    await app.close();
  });
});
