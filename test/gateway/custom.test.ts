/**
 * Calls to a custom app (contract, sections 1 and 2): any method, path and query as they are, its answer
 * untouched, in every shape that HTTP/1 gives a message.
 */
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Conversation } from '../support/conversation.ts';
import { openRig, type Rig } from './rig.ts';

let rig: Rig;
/** Answers with what it got. */
let echo: string;

beforeAll(async () => {
  rig = await openRig();
  echo = rig.app.play(async (req, res) => {
    const body = await read(req);
    res.end(`${req.method} ${req.url} ${body.length} ${body.toString('latin1').slice(0, 40)}`);
  });
});
afterAll(() => rig.stop());

async function read(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function echoed(call: Omit<Parameters<Rig['call']>[0], 'path'> & { rest?: string }): Promise<string> {
  const answer = await rig.call({ ...call, path: `${echo}${call.rest ?? ''}` });
  expect(answer.status).toBe(200);
  return answer.body.toString();
}

describe('a call', () => {
  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'REPORT', 'QUERY', 'M-SEARCH'])(
    'passes with the method %s, with and without a body',
    async method => {
      expect(await echoed({ method })).toBe(`${method} /${echo} 0 `);
      expect(await echoed({ method, body: 'abc' })).toBe(`${method} /${echo} 3 abc`);
    },
  );

  it.each([
    '',
    '/',
    '/a/b',
    '/a//b/',
    '/%41%7e/~',
    "/a;v=1/@:!$'()*+,=",
    '/x?y=%2F..%2f&z=/../a?b',
    '?a=1&a=1&=&&b',
    '?q=a+b%20c%00',
  ])('passes path and query as they are: %s', async rest => {
    expect(await echoed({ rest })).toBe(`GET /${echo}${rest} 0 `);
  });

  it("goes below the path of the app's own address", async () => {
    const answer = await rig.call({ app: 'based', path: `${echo}/x?y=1` });
    expect(answer.body.toString()).toBe(`GET /base/path/${echo}/x?y=1 0 `);
  });

  it('to an app without more path is a call of its root', async () => {
    const caller = await rig.converse();
    caller.send(rig.head({ path: '' }).replace('/custom/ ', '/custom '));
    // Nothing is played at the root: the stage says so with a status of its own.
    expect(await caller.until('nothing is played here')).toMatch(/^HTTP\/1\.1 599 /);
    caller.close();
  });

  it('passes a body of declared length, and a chunked one, whole', async () => {
    const body = 'x'.repeat(300_000);
    expect(await echoed({ method: 'POST', body })).toMatch(/^POST \S+ 300000 x+$/);
    const caller = await rig.converse();
    caller.send(rig.head({ path: echo, method: 'POST', headers: ['Transfer-Encoding: chunked'] }));
    caller.send(`3\r\nabc\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
    await caller.until(/POST \S+ 300003 abcx+/);
    caller.close();
  });

  it('passes a chunked body of no bytes', async () => {
    const caller = await rig.converse();
    caller.send(rig.head({ path: echo, method: 'PUT', headers: ['Transfer-Encoding: chunked'] }));
    caller.send('0\r\n\r\n');
    expect(await caller.until(`PUT /${echo} 0 `)).toMatch(/^HTTP\/1\.1 200 /);
    caller.close();
  });

  it('hands the first half of a body on before the second has been sent', async () => {
    const got = Promise.withResolvers<string>();
    const path = rig.app.play(async (req, res) => {
      req.once('data', chunk => got.resolve(String(chunk)));
      await new Promise(resolve => req.once('end', resolve));
      res.end('whole');
    });
    const caller = await rig.converse();
    caller.send(rig.head({ path, method: 'POST', headers: ['Content-Length: 10'] }));
    caller.send('12345');
    expect(await got.promise).toBe('12345');
    caller.send('67890');
    await caller.until('whole');
    caller.close();
  });

  it('is answered by HTTP/1.1 to a caller of HTTP/1.0, without chunks, and ends with the connection', async () => {
    const path = rig.app.play((_req, res) => {
      res.write('one ');
      res.end('two');
    });
    const caller = await rig.converse();
    caller.send(rig.head({ path, version: '1.0' }));
    const text = await caller.end();
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text).not.toMatch(/transfer-encoding/i);
    expect(text.endsWith('\r\n\r\none two')).toBe(true);
  });

  it('of HTTP/1.0 needs no Host', async () => {
    const caller = await rig.converse();
    caller.send(rig.head({ path: echo, version: '1.0' }).replace('Host: test\r\n', ''));
    expect(await caller.end()).toContain(`GET /${echo} 0 `);
  });
});

describe('one connection', () => {
  it('carries one call after the other', async () => {
    const caller = await rig.converse();
    for (let i = 0; i < 5; i++) {
      const from = caller.text.length;
      caller.send(rig.head({ path: `${echo}?n=${i}`, hook: i % 2 === 1 }));
      await caller.until(`GET /${echo}?n=${i} 0 `, from);
    }
    expect(caller.text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(5);
    caller.close();
  });

  it('answers pipelined calls in order, though the first takes longest', async () => {
    const release = Promise.withResolvers<void>();
    const slow = rig.app.play(async (_req, res) => {
      await release.promise;
      res.end('first');
    });
    const answered = Promise.withResolvers<void>();
    const quick = rig.app.play((_req, res) => {
      res.end('second');
      answered.resolve();
    });
    const caller = await rig.converse();
    caller.send(rig.head({ path: slow }) + rig.head({ path: quick, hook: true }) + rig.head({ path: echo }));
    await answered.promise;
    release.resolve();
    await caller.until(`GET /${echo} 0 `);
    expect(caller.text).toMatch(/first[^]*second[^]*GET \S+ 0 /);
    caller.close();
  });

  it('goes on after an answer that came before the upload had ended', async () => {
    const path = rig.app.play((_req, res) => {
      res.writeHead(413, { 'Content-Length': 8 }).end('too much');
    });
    for (const hook of [false, true]) {
      const caller = await rig.converse();
      const size = 20 * 1024 * 1024;
      caller.send(rig.head({ path, hook, method: 'POST', headers: [`Content-Length: ${size}`] }));
      caller.send(Buffer.alloc(1024));
      await caller.until('too much');
      const from = caller.text.length;
      caller.send(Buffer.alloc(size - 1024));
      caller.send(rig.head({ path: echo }));
      await caller.until(`GET /${echo} 0 `, from);
      expect(caller.text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200']);
      caller.close();
    }
  });
});

describe('an answer', () => {
  it('to HEAD has the headers of the body that it leaves out', async () => {
    const path = rig.app.play((_req, res) => res.writeHead(200, { 'Content-Length': 1234 }).end());
    for (const hook of [false, true]) {
      const answer = await rig.call({ path, method: 'HEAD', hook });
      expect([answer.status, answer.header('content-length'), answer.body.length]).toEqual([200, '1234', 0]);
    }
  });

  it('to HEAD may announce trailers that only a body would have', async () => {
    const path = rig.raw.play(socket => {
      socket.end(
        'HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
      );
    });
    expect((await rig.call({ app: 'raw', path, method: 'HEAD' })).status).toBe(200);
  });

  it('304 keeps the Content-Length of what it stands for', async () => {
    const path = rig.raw.play(socket => {
      socket.end('HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 99\r\n\r\n');
    });
    for (const hook of [false, true]) {
      const answer = await rig.call({ app: 'raw', path, hook });
      expect([answer.status, answer.header('content-length'), answer.body.length]).toEqual([304, '99', 0]);
    }
  });

  it('204 has no body and no framing', async () => {
    const path = rig.app.play((_req, res) => res.writeHead(204).end());
    for (const hook of [false, true]) {
      const answer = await rig.call({ path, hook });
      expect([answer.status, answer.body.length]).toEqual([204, 0]);
      expect(answer.header('transfer-encoding') ?? answer.header('content-length')).toBeUndefined();
    }
  });

  it('keeps its status and reason, whatever they are', async () => {
    const path = rig.raw.play(socket => {
      socket.end('HTTP/1.1 299 Quite All Right\r\nContent-Length: 0\r\n\r\n');
    });
    const answer = await rig.call({ app: 'raw', path });
    expect(answer.statusLine).toBe('HTTP/1.1 299 Quite All Right');
  });

  it('keeps its trailers', async () => {
    const path = rig.app.play((_req, res) => {
      res.writeHead(200, { Trailer: 'X-Sum, X-Other' });
      res.write('body');
      res.addTrailers([
        ['X-Sum', '42'],
        ['X-Other', 'y'],
      ]);
      res.end();
    });
    for (const hook of [false, true]) {
      const answer = await rig.call({ path, hook });
      expect(answer.header('trailer')).toBe('X-Sum, X-Other');
      expect(answer.body.toString()).toBe('body');
      expect(answer.trailers).toEqual([
        ['X-Sum', '42'],
        ['X-Other', 'y'],
      ]);
    }
  });

  it('without a length, ended by the connection, is whole to a caller of HTTP/1.1', async () => {
    const path = rig.raw.play(socket => socket.end('HTTP/1.0 200 OK\r\n\r\nolden'));
    const answer = await rig.call({ app: 'raw', path });
    expect(answer.header('transfer-encoding')).toBe('chunked');
    expect(answer.body.toString()).toBe('olden');
  });

  it('is preceded by its interim answers (102, 103)', async () => {
    const path = rig.raw.play(socket => {
      socket.write('HTTP/1.1 102 Processing\r\n\r\n');
      socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n');
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi');
    });
    for (const hook of [false, true]) {
      const answer = await rig.call({ app: 'raw', path, hook });
      expect(answer.bytes.toString()).toMatch(
        /^HTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 103 Early Hints\r\nLink: <\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
      );
      expect(answer.body.toString()).toBe('hi');
    }
  });

  it('has no interim answers before it for a caller of HTTP/1.0', async () => {
    const path = rig.raw.play(socket => {
      socket.end(
        'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
      );
    });
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'raw', path, version: '1.0' }));
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 200 OK/);
  });
});

describe('Expect: 100-continue', () => {
  const expecting = ['Expect: 100-continue', 'Content-Length: 4'];

  async function ask(head: string): Promise<Conversation> {
    const caller = await rig.converse();
    caller.send(head);
    return caller;
  }

  it('is answered once the checks have passed, and does not reach the app', async () => {
    const path = rig.app.play(async (req, res) => {
      const body = await read(req);
      res.end(`${req.headers.expect} ${body}`);
    });
    const caller = await ask(rig.head({ path, method: 'POST', headers: expecting, hook: true }));
    expect(await caller.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    caller.send('body');
    await caller.until('undefined body');
    caller.close();
  });

  it.each([
    ['a bad token', 401, (head: string) => head.replace('Bearer ', 'Bearer x')],
    ['an unknown app', 404, (head: string) => head.replace('/custom/', '/none/')],
    ['a forbidden webhook', 400, (head: string) => head.replace('127.0.0.1', '10.0.0.1')],
  ])('is not answered with 100 when the call is refused for %s', async (_what, status, spoil) => {
    const caller = await ask(spoil(rig.head({ path: echo, method: 'POST', headers: expecting, hook: true })));
    expect(await caller.end()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it('is refused with 417 when it is another', async () => {
    const headers = ['Expect: a-miracle', 'Content-Length: 4', 'Connection: close'];
    const caller = await ask(rig.head({ path: echo, method: 'POST', headers }));
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 417 [^]*"code":"expectation_failed"/);
  });
});

describe('a refusal', () => {
  it('reaches a caller that sends its whole body before it reads, however large', async () => {
    const size = 30 * 1024 * 1024;
    const caller = await rig.converse();
    caller.socket.pause();
    caller.send(
      rig
        .head({ path: echo, method: 'POST', headers: [`Content-Length: ${size}`] })
        .replace('Bearer ', 'Bearer x'),
    );
    await new Promise<void>((resolve, reject) => {
      caller.socket.write(Buffer.alloc(size), error => (error ? reject(error) : resolve()));
    });
    caller.socket.resume();
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 401 [^]*"unauthorized"/);
  });
});
