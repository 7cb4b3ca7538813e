/**
 * The dashboard's files as a browser gets them from the admin listener: which paths there are, with which
 * headers, compressed and not, asked for again, and where nothing was built.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createDashboard } from '../src/dashboard.ts';
import { silentLogger } from '../src/log.ts';
import { temporaryDirectory } from './store/samples.ts';
import { openAdmin, send } from './support/admin.ts';
import { callRaw } from './support/caller.ts';
import { captureLog } from './support/log.ts';

const INDEX = '<!doctype html><script type="module" src="/assets/index-x.js"></script>';
const SCRIPT = 'console.log("the dashboard");\n'.repeat(100);
const FILES: Readonly<Record<string, string>> = {
  'index.html': INDEX,
  'favicon.svg': '<svg/>',
  'assets/index-x.js': SCRIPT,
  'assets/index-y.css': 'body{}',
  'assets/notes.md': 'of no kind that is given out',
};

const SAFETY = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
const LASTING = 'public, max-age=31536000, immutable';
const GZIP = { 'accept-encoding': 'gzip, deflate, br' };

/** A folder as the build leaves it. */
function built(files = FILES): string {
  const dir = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(dir, name, '..'), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  return dir;
}

const dashboardIn = (dir: string) => createDashboard({ dir, log: silentLogger });
const open = () => openAdmin({ dashboard: dashboardIn(built()) });

describe('the dashboard', () => {
  it.each([
    ['/', INDEX, 'text/html; charset=utf-8', 'no-cache'],
    ['/index.html', INDEX, 'text/html; charset=utf-8', 'no-cache'],
    ['/favicon.svg', '<svg/>', 'image/svg+xml', 'no-cache'],
    ['/assets/index-x.js', SCRIPT, 'text/javascript; charset=utf-8', LASTING],
    ['/assets/index-y.css', 'body{}', 'text/css; charset=utf-8', LASTING],
  ])('gives out %s, to whoever asks', async (path, text, type, caching) => {
    const base = await open();
    const answer = await send(base + path);
    expect([answer.status, answer.text]).toEqual([200, text]);
    expect(answer.headers).toMatchObject({
      ...SAFETY,
      'content-type': type,
      'cache-control': caching,
      'content-length': `${text.length}`,
      vary: 'Accept-Encoding',
    });
    expect(answer.headers['set-cookie']).toBeUndefined();
    const head = await send(base + path, { method: 'HEAD' });
    const { date: _, ...headers } = head.headers;
    expect([head.status, head.bytes.length]).toEqual([200, 0]);
    expect(answer.headers).toMatchObject(headers);
  });

  it('is one page for all its places', async () => {
    const base = await open();
    const places = ['/deliveries', '/deliveries/', '/deliveries/x', '/deliveries/x/y?z', '/runs', '/runs/x'];
    for (const place of [...places, '/apps', '/health', '/login', '/?a=b']) {
      const { status, text } = await send(base + place);
      expect([place, status, text]).toEqual([place, 200, INDEX]);
    }
  });

  it('has nothing anywhere else', async () => {
    const port = Number(new URL(await open()).port);
    const unknown = ['/nonsense', '/deliveriesx', '/apps/x', '/health/x', '/constructor', '//'];
    const unbuilt = ['/assets/', '/assets/index-z.js', '/assets/notes.md'];
    const winding = ['/assets/../index.html', '/%2e%2e/package.json', '/../package.json'];
    for (const path of [...unknown, ...unbuilt, ...winding]) {
      const { status, body } = await callRaw({ port, path });
      expect([path, status, `${body}`]).toEqual([path, 404, 'not found\n']);
    }
  });

  it('is only read', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const answer = await send(`${await open()}/deliveries`, { method });
      expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD']);
    }
  });

  it.each([
    ['gzip', true],
    ['deflate, GZIP;q=0.5', true],
    ['*', true],
    ['br;q=1, gzip ; q=0', false],
    ['gzip;q=0.000, *', false],
    ['br, deflate', false],
    ['', false],
  ])('is compressed for who accepts “%s”: %s', async (accepted, compressed) => {
    const answer = await send(`${await open()}/assets/index-x.js`, {
      headers: { 'accept-encoding': accepted },
    });
    expect(answer.headers['content-encoding']).toBe(compressed ? 'gzip' : undefined);
    expect(answer.headers['content-length']).toBe(`${answer.bytes.length}`);
    expect(`${compressed ? gunzipSync(answer.bytes) : answer.bytes}`).toBe(SCRIPT);
  });

  it('is not compressed where that would make it longer', async () => {
    const answer = await send(`${await open()}/favicon.svg`, { headers: GZIP });
    expect([answer.text, answer.headers['content-encoding']]).toEqual(['<svg/>', undefined]);
  });

  it('is not sent again to who has it', async () => {
    const base = await open();
    const url = `${base}/assets/index-x.js`;
    const tagOf = async (headers: Record<string, string>) =>
      (await send(url, { headers })).headers['etag'] as string;
    const [plain, gzipped] = [await tagOf({}), await tagOf(GZIP)];
    expect([plain, gzipped].every(tag => /^"[\w-]+"$/.test(tag))).toBe(true);
    expect(gzipped).not.toBe(plain);
    expect((await send(base)).headers['etag']).not.toBe(plain);
    const cases: readonly [Record<string, string>, 200 | 304][] = [
      [{ 'if-none-match': plain }, 304],
      [{ 'if-none-match': `"other", W/${plain}` }, 304],
      [{ 'if-none-match': '*' }, 304],
      [{ ...GZIP, 'if-none-match': gzipped }, 304],
      [{ ...GZIP, 'if-none-match': plain }, 200],
      [{ 'if-none-match': gzipped }, 200],
      [{ 'if-none-match': '"other"' }, 200],
    ];
    for (const [headers, status] of cases) {
      const answer = await send(url, { headers });
      expect([headers, answer.status]).toEqual([headers, status]);
      if (status !== 304) continue;
      expect(answer.bytes).toHaveLength(0);
      expect(answer.headers).toMatchObject({ ...SAFETY, 'cache-control': LASTING, vary: 'Accept-Encoding' });
    }
  });

  it('has another tag when it has changed', async () => {
    const changed = built({ 'index.html': `${INDEX} ` });
    const headers = { 'if-none-match': (await send(await open())).headers['etag'] as string };
    const other = await openAdmin({ dashboard: dashboardIn(changed) });
    expect(await send(other, { headers })).toMatchObject({ status: 200, text: `${INDEX} ` });
  });
});

describe('where there is no admin token', () => {
  it('pages are for an address or localhost alone, since any page can point its name here', async () => {
    const base = await openAdmin({ adminToken: undefined, dashboard: dashboardIn(built()) });
    const { port } = new URL(base);
    for (const path of ['/', '/deliveries', '/assets/index-x.js']) {
      const statusFor = async (host: string) => (await send(base + path, { headers: { host } })).status;
      for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`])
        expect([host, await statusFor(host)]).toEqual([host, 200]);
      for (const host of ['rebound.example', `localhost.rebound.example:${port}`, 'no name'])
        expect([host, await statusFor(host)]).toEqual([host, 403]);
    }
  });

  it('with one, the listener may have a name', async () => {
    const answer = await send(await open(), { headers: { host: 'admin.example' } });
    expect(answer.status).toBe(200);
  });
});

describe('where nothing was built', () => {
  it('says what to do', async () => {
    const { log, lines } = captureLog();
    const dashboard = createDashboard({ dir: join(temporaryDirectory(), 'nothing'), log });
    const base = await openAdmin({ dashboard });
    for (const path of ['/', '/deliveries/x', '/login']) {
      const answer = await send(base + path);
      expect([answer.status, answer.headers['content-type']]).toEqual([503, 'text/plain; charset=utf-8']);
      expect(answer.headers).toMatchObject({ ...SAFETY, 'cache-control': 'no-store' });
      expect(answer.text).toContain('npm run dashboard');
    }
    expect((await send(`${base}/assets/index-x.js`)).status).toBe(404);
    expect((await send(`${base}/healthz`)).status).toBe(200);
    expect(lines).toEqual([]);
  });

  it('a folder that cannot be read is told in the log, and keeps nothing from starting', async () => {
    const { log, lines } = captureLog();
    const base = await openAdmin({ dashboard: createDashboard({ dir: join(built(), 'index.html'), log }) });
    expect((await send(base)).status).toBe(503);
    expect(lines).toMatchObject([{ level: 'warn', msg: 'the dashboard cannot be read' }]);
  });
});
