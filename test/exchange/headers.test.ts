/**
 * Which headers pass (contract, sections 1 and 2), seen on the wire at both ends: what the app gets of the
 * caller's, and the caller of the app's.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RawAnswer } from '../support/caller.ts';
import { openRig, type Rig } from '../gateway/rig.ts';

let rig: Rig;
/** Answers with the headers that the app got, as on the wire. */
let echo: string;

beforeAll(async () => {
  rig = await openRig();
  echo = rig.app.play((req, res) => {
    req.resume();
    res.end(JSON.stringify(req.rawHeaders));
  });
});
afterAll(() => rig.stop());

type Pair = readonly [string, string];

function pairs(flat: readonly string[]): Pair[] {
  return flat.flatMap((name, i): Pair[] => (i % 2 === 0 ? [[name, flat[i + 1]!]] : []));
}

async function gotten(call: { app?: 'custom' | 'trusted' | 'cortex'; headers: string[] }): Promise<Pair[]> {
  const method = call.app === 'cortex' ? 'POST' : 'GET';
  const answer = await rig.call({ path: echo, method, ...call });
  const body = JSON.parse(answer.body.toString());
  return pairs(call.app === 'cortex' ? body.result : body);
}

const valuesOf = (headers: readonly Pair[], name: string): string[] =>
  headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);

/** An answer that the app writes by hand. */
function answering(lines: readonly string[], body = 'hi'): Promise<RawAnswer> {
  const path = rig.raw.play(socket => {
    const head = ['HTTP/1.1 200 OK', ...lines, `Content-Length: ${body.length}`];
    socket.end(Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
  });
  return rig.call({ app: 'raw', path });
}

describe('what the app gets', () => {
  it('keeps the case, order and repetition of headers, and bytes above ASCII', async () => {
    const sent = ['X-ODD-case: 1', 'a: x', 'X-odd-CASE: 2', 'A: y', 'X-Latin: caf\xe9', 'X-Empty:'];
    const caller = await rig.converse();
    caller.send(Buffer.from(rig.head({ path: echo, headers: [...sent, 'Connection: close'] }), 'latin1'));
    const body = (await caller.end()).split('\r\n\r\n')[1]!;
    const got = pairs(JSON.parse(Buffer.from(body, 'latin1').toString()));
    expect(got.filter(([key]) => /^(x-odd-case|a|x-latin|x-empty)$/i.test(key))).toEqual([
      ['X-ODD-case', '1'],
      ['a', 'x'],
      ['X-odd-CASE', '2'],
      ['A', 'y'],
      ['X-Latin', 'caf\xe9'],
      ['X-Empty', ''],
    ]);
  });

  it('never is the token or X-Webhook-Secret', async () => {
    const got = await gotten({ headers: ['X-Webhook-Secret: hush', 'Proxy-Authorization: Basic eA=='] });
    expect(got.map(([key]) => key.toLowerCase())).not.toContain('authorization');
    expect(JSON.stringify(got)).not.toMatch(/hush|Basic|Bearer|webhook/i);
  });

  it('is the token, but still no secret, where the app has opted in', async () => {
    const got = await gotten({ app: 'trusted', headers: ['X-Webhook-Secret: hush'] });
    expect(valuesOf(got, 'authorization')).toEqual([rig.auth.replace('Authorization: ', '')]);
    expect(JSON.stringify(got)).not.toContain('hush');
  });

  it('is nothing that ends at this hop, nor what Connection names', async () => {
    const got = await gotten({
      headers: [
        'Connection: X-Hop, close',
        'Connection: x-OTHER',
        'X-Hop: 1',
        'X-Other: 1',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'TE: trailers',
        'Upgrade: h2c',
        'Trailer: X-T',
        'X-Kept: yes',
      ],
    });
    const names = got.map(([key]) => key.toLowerCase());
    for (const ended of ['x-hop', 'x-other', 'keep-alive', 'proxy-connection', 'te', 'upgrade', 'trailer']) {
      expect(names).not.toContain(ended);
    }
    expect(names).toContain('x-kept');
  });

  it('cannot lose what the service adds by naming it in Connection', async () => {
    const got = await gotten({ headers: ['Connection: X-Request-Id, X-Forwarded-For, Host, close'] });
    for (const name of ['host', 'x-request-id', 'x-forwarded-for']) {
      expect(valuesOf(got, name)).toHaveLength(1);
    }
  });

  it("is the app's own Host, and the caller's in X-Forwarded-Host", async () => {
    const got = await gotten({ headers: [] });
    expect(valuesOf(got, 'host')).toEqual([new URL(rig.app.url).host]);
    expect(valuesOf(got, 'x-forwarded-host')).toEqual(['test']);
    expect(valuesOf(got, 'x-forwarded-for')).toEqual(['127.0.0.1']);
    expect(valuesOf(got, 'x-forwarded-proto')).toEqual(['http']);
  });

  it('has the caller added to the X-Forwarded-For of the proxies before', async () => {
    const got = await gotten({
      headers: [
        'X-Forwarded-For: 203.0.113.9',
        'X-Forwarded-For: 198.51.100.1',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Host: public.example',
      ],
    });
    expect(valuesOf(got, 'x-forwarded-for')).toEqual(['203.0.113.9, 198.51.100.1, 127.0.0.1']);
    expect(valuesOf(got, 'x-forwarded-proto')).toEqual(['https']);
    expect(valuesOf(got, 'x-forwarded-host')).toEqual(['public.example']);
  });

  it('is JSON to a function, which is asked not to encode its answer', async () => {
    const got = await gotten({
      app: 'cortex',
      headers: ['Accept-Encoding: gzip', 'Content-Type: text/plain'],
    });
    expect(valuesOf(got, 'content-type')).toEqual(['application/json']);
    expect(valuesOf(got, 'accept-encoding')).toEqual(['identity']);
  });
});

describe('what the caller gets', () => {
  it('keeps the case, order and repetition of headers', async () => {
    const lines = ['Set-Cookie: a=1', 'X-ODD: x', 'set-cookie: b=2', 'Date: Thu, 01 Jan 1970 00:00:00 GMT'];
    const answer = await answering([...lines, 'Connection: close']);
    const shown = answer.headers.slice(0, 4).map(([key, value]) => `${key}: ${value}`);
    expect(shown).toEqual(lines);
  });

  it('keeps bytes above ASCII', async () => {
    expect((await answering(['X-Latin: caf\xe9', 'Connection: close'])).header('x-latin')).toBe('caf\xe9');
  });

  it('is nothing that ends at this hop, nor what Connection names', async () => {
    const answer = await answering([
      'Connection: close, X-Hop',
      'X-Hop: 1',
      'Keep-Alive: timeout=9',
      'Proxy-Authenticate: Basic',
      'Upgrade: h2c',
      'X-Kept: yes',
    ]);
    const passed = ['x-hop', 'keep-alive', 'proxy-authenticate', 'upgrade'].filter(name =>
      answer.header(name),
    );
    expect(passed).toEqual([]);
    expect(answer.header('connection')).toBe('close'); // its own, since the caller asked for it
    expect(answer.header('x-kept')).toBe('yes');
  });

  it('is not touched otherwise: type, encoding, length, validators, cookies, redirects', async () => {
    const lines = [
      'Content-Type: Text/HTML; Charset=x',
      'Content-Encoding: gzip',
      'ETag: W/"1"',
      'Location: http://internal.example/?webhookEndpoint=x',
      'Server: app',
      'Vary: *',
    ];
    const answer = await answering([...lines, 'Connection: close']);
    for (const line of lines) expect(answer.head).toContain(`${line}\r\n`);
    expect(answer.header('content-length')).toBe('2');
  });

  it('is a problem where a header of the app cannot be passed on', async () => {
    const answer = await answering([`X-Long: ${'x'.repeat(70_000)}`]);
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body.toString()).code).toBe('app_bad_answer');
  });
});
