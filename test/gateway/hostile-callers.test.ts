/**
 * Requests that caller, gateway and app could read differently: each is refused before the app is called,
 * with a problem, and without a second reading of what follows it.
 */
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseAnswer } from '../support/caller.ts';
import { until } from '../support/waiting.ts';
import { openRig, type Rig } from './rig.ts';

let rig: Rig;
let path: string;
/** What the app saw: request lines, and the bytes that followed their heads. */
let seen: string[];

beforeAll(async () => {
  rig = await openRig();
  path = rig.raw.play((socket, head) => {
    seen.push(head);
    socket.on('data', chunk => seen.push(chunk.toString('latin1')));
    if (!head.startsWith('POST')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi');
  });
});
afterAll(() => rig.stop());
beforeEach(() => {
  seen = [];
});

const smuggled = (): string => rig.head({ app: 'raw', path: `${path}/smuggled`, headers: ['X: smuggled'] });

describe('a request is refused with 400 when it has', () => {
  const CHUNKED_BODY = '0\r\n\r\n';
  it.each<[what: string, headers: string[], body: string]>([
    ['two Host headers', ['Host: other.example'], ''],
    ['two equal Host headers', ['Host: test'], ''],
    ['a coding besides chunked', ['Transfer-Encoding: gzip, chunked'], CHUNKED_BODY],
    ['a coding other than chunked', ['Transfer-Encoding: gzip'], CHUNKED_BODY],
    ['chunked twice in a line', ['Transfer-Encoding: chunked, chunked'], CHUNKED_BODY],
    ['Transfer-Encoding twice', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], CHUNKED_BODY],
    ['an odd Transfer-Encoding', ['Transfer-Encoding: \tchunked;q=1'], CHUNKED_BODY],
    [
      'Transfer-Encoding and Content-Length',
      ['Transfer-Encoding: chunked', 'Content-Length: 4'],
      CHUNKED_BODY,
    ],
    [
      'Content-Length and Transfer-Encoding',
      ['Content-Length: 4', 'Transfer-Encoding: chunked'],
      CHUNKED_BODY,
    ],
    ['two Content-Lengths', ['Content-Length: 4', 'Content-Length: 4'], 'body'],
    ['a signed Content-Length', ['Content-Length: +4'], 'body'],
    ['a list of Content-Lengths', ['Content-Length: 4, 4'], 'body'],
    ['a folded header', ['X-Folded: a', ' b'], ''],
    ['white space before a colon', ['X-Space : a'], ''],
    ['a header without a name', [': a'], ''],
    ['a NUL in a header', ['X-Nul: a\0b'], ''],
  ])('%s', async (_what, headers, body) => {
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'raw', path, method: 'POST', headers }) + body + smuggled());
    await caller.until('"run_id"');
    caller.socket.end();
    await caller.end();
    const answer = parseAnswer(caller.bytes);
    expect(answer.status).toBe(400);
    expect(answer.header('x-request-id')).toBeDefined();
    expect(JSON.parse(answer.body.toString().slice(0, Number(answer.header('content-length')))).code).toBe(
      'bad_request',
    );
    // What follows a request without a body is one of its own; what follows bad framing is nothing.
    expect(seen.filter(each => body !== '' || each.includes('POST'))).toEqual([]);
  });

  it('Transfer-Encoding in HTTP/1.0', async () => {
    const headers = ['Transfer-Encoding: chunked'];
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'raw', path, method: 'POST', version: '1.0', headers }) + CHUNKED_BODY);
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 400 [^]*"bad_request"/);
    expect(seen).toEqual([]);
  });
});

describe('a request target is refused with 400 when it is', () => {
  it.each([
    ['absolute', 'http://127.0.0.1/v4/p-test/raw/x'],
    ['absolute to somewhere else', 'http://internal.example/v4/p-test/raw/x'],
    ['begun with two slashes', '//v4/p-test/raw/x'],
    ['begun with the name of a host', '//internal.example/v4/p-test/raw/x'],
    ['an asterisk', '*'],
    ['holding a dot segment', '/v4/p-test/raw/../x'],
    ['holding an encoded dot segment', '/v4/p-test/raw/%2e%2E/x'],
    ['holding an encoded slash', '/v4/p-test/raw/a%2fb'],
    ['holding an encoded backslash', '/v4/p-test/raw/a%5Cb'],
    ['holding an encoded NUL', '/v4/p-test/raw/a%00b'],
    ['holding a backslash', '/v4/p-test/raw/a\\b'],
    ['holding a fragment', '/v4/p-test/raw/a#b'],
  ])('%s', async (_what, target) => {
    const caller = await rig.converse();
    const request = rig.head({ app: 'raw', path, method: 'OPTIONS', headers: ['Connection: close'] });
    caller.send(request.replace(/ \/v4\S+/, ` ${target}`));
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 400 [^]*"bad_request_target"/);
    expect(seen).toEqual([]);
  });
});

describe('what a caller cannot do', () => {
  it('have a second request read out of the chunks of the first', async () => {
    const urls: string[] = [];
    const got = Promise.withResolvers<string>();
    const plain = rig.app.play(async (req, res) => {
      urls.push(req.url!);
      got.resolve(await text(req));
      res.end();
    });
    const caller = await rig.converse();
    const body = rig.head({ path: `${plain}/smuggled` });
    caller.send(rig.head({ path: plain, method: 'POST', headers: ['Transfer-Encoding: chunked'] }));
    caller.send(`${body.length.toString(16)};ext="\t"\r\n${body}\r\n0\r\n\r\n`);
    expect(await got.promise).toBe(body);
    await caller.until('HTTP/1.1 200 OK');
    expect(urls).toEqual([`/${plain}`]);
    caller.close();
  });

  it('send Authorization, or anything, to the app in a trailer', async () => {
    const caller = await rig.converse();
    const headers = ['Transfer-Encoding: chunked', 'Trailer: Authorization'];
    caller.send(rig.head({ app: 'raw', path, method: 'POST', headers }));
    caller.send('3\r\nabc\r\n');
    await until(() => seen.join('').includes('abc'));
    caller.send('3\r\ndef\r\n0\r\nAuthorization: Bearer smuggled\r\nX-Sum: 1\r\n\r\n');
    await until(() => seen.join('').endsWith('def\r\n0\r\n\r\n'));
    caller.close();
    expect(seen.join('')).not.toMatch(/authorization|x-sum|trailer/i);
  });

  it('have garbage after a call taken for the answer to that call', async () => {
    const release = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const slow = rig.app.play(async (_req, res) => {
      reached.resolve();
      await release.promise;
      res.end('late');
    });
    const caller = await rig.converse();
    caller.send(rig.head({ path: slow }));
    await reached.promise;
    caller.send('GARBAGE\r\n\r\n');
    expect(await caller.end()).toBe('');
    release.resolve();
  });

  it('open a tunnel', async () => {
    const caller = await rig.converse();
    caller.send(`CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: t\r\n${rig.auth}\r\n\r\n`);
    expect(await caller.end()).not.toMatch(/ 200 /);
  });

  it('break the chunks of an upload and have it taken for whole', async () => {
    const caller = await rig.converse();
    const call = { app: 'raw', path, method: 'POST', hook: true } as const;
    caller.send(rig.head({ ...call, headers: ['Transfer-Encoding: chunked'] }));
    caller.send('3\r\nabc\r\n');
    await until(() => seen.join('').includes('abc'));
    caller.send('zz\r\n');
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 400 /);
    expect(seen.join('')).not.toMatch(/\r\n0\r\n/);
    expect(rig.deliveries.accepted).toEqual([]);
  });
});

describe('an app cannot', () => {
  it('switch protocols on a call that did not ask for it', async () => {
    const bad = rig.raw.play(socket => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
    const answer = await rig.call({ app: 'raw', path: bad, hook: true });
    expect(answer.status).toBe(502);
    const { json } = await rig.delivered(answer.header('x-request-id'));
    expect(json).toMatchObject({ status_code: 502, error: { type: expect.any(String) } });
  });

  it.each([
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['no status', 'HTTP/1.1 OK\r\n\r\n'],
  ])('have %s passed on as an answer', async (_what, bytes) => {
    const bad = rig.raw.play(socket => socket.end(bytes));
    const answer = await rig.call({ app: 'raw', path: bad });
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body.toString()).code).toMatch(/^app_(unreachable|bad_answer)$/);
  });

  it('put bytes after its answer into the next one', async () => {
    const bad = rig.raw.play(socket => {
      socket.write(
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
      );
    });
    const caller = await rig.converse();
    for (let i = 1; i <= 3; i++) {
      caller.send(rig.head({ app: 'raw', path: bad }));
      await until(() => caller.text.split('\r\n\r\nhi').length === i + 1);
    }
    expect(caller.text).not.toContain('evil');
    caller.close();
  });
});
