/**
 * WebSockets to custom apps (contract, section 1.8): they pass through, and neither `webhookEndpoint` nor
 * `X-Webhook-Secret` has any effect on them.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { converse } from '../support/conversation.ts';
import { flood } from '../support/flood.ts';
import { openInbox } from '../support/inbox.ts';
import { PROJECT, startService, type TestService } from '../support/service.ts';
import { stalled, until } from '../support/waiting.ts';
import { openRig, type Rig } from './rig.ts';

let app: WebSocketServer;
let service: TestService;
/** The handshake and the connection of each WebSocket that the app has accepted. */
const accepted: Array<{ req: IncomingMessage; socket: WebSocket }> = [];

beforeAll(async () => {
  app = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    handleProtocols: protocols => [...protocols].at(-1) ?? false,
    verifyClient: ({ req }, done) =>
      done(!req.url!.includes('refuse'), 403, 'not you', { 'X-Why': 'because' }),
  });
  await once(app, 'listening');
  app.on('connection', (socket, req) => {
    accepted.push({ req, socket });
    socket.on('error', () => {});
    if (req.url!.includes('echo'))
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  service = await startService({
    apps: { chat: { runtime: 'custom', url }, fn: { runtime: 'cortex', url } },
  });
});

afterAll(async () => {
  await service.stop();
  app.close();
  for (const { socket } of accepted) socket.terminate();
});

function dialled(path: string, headers: Record<string, string> = {}, protocols: string[] = []): WebSocket {
  const url = `ws://127.0.0.1:${service.port}${service.path(path)}`;
  return new WebSocket(url, protocols, { headers: { Authorization: `Bearer ${service.token}`, ...headers } });
}

async function opened(
  path: string,
  ...rest: [Record<string, string>?, string[]?]
): Promise<{
  caller: WebSocket;
  app: WebSocket;
  req: IncomingMessage;
}> {
  const caller = dialled(path, ...rest);
  caller.on('error', () => {});
  await once(caller, 'open');
  const { socket, req } = accepted.at(-1)!;
  return { caller, app: socket, req };
}

const underlying = (socket: WebSocket): Socket => (socket as unknown as { _socket: Socket })._socket;

describe('a WebSocket', () => {
  it('carries messages both ways', async () => {
    const { caller } = await opened('chat/echo');
    for (const message of ['hello', Buffer.from([0, 255]), '']) {
      caller.send(message);
      const [data] = (await once(caller, 'message')) as [Buffer];
      expect(data.equals(Buffer.from(message as string))).toBe(true);
    }
    caller.close();
    await once(caller, 'close');
  });

  it('reaches the app with its path and query, its subprotocols, and without token or secret', async () => {
    const { caller, req } = await opened('chat/room/1?a=%20b', { 'X-Webhook-Secret': 'hush' }, ['v1', 'v2']);
    expect(caller.protocol).toBe('v2');
    expect(req.url).toBe('/room/1?a=%20b');
    expect(req.headers).toMatchObject({ 'sec-websocket-protocol': 'v1,v2', 'x-forwarded-for': '127.0.0.1' });
    expect(req.headers).not.toHaveProperty('authorization');
    expect(JSON.stringify(req.rawHeaders)).not.toContain('hush');
    caller.terminate();
  });

  it('has an X-Request-Id, the same for caller and app', async () => {
    const caller = dialled('chat/x', { 'X-Request-Id': 'mine' });
    const [response] = (await once(caller, 'upgrade')) as [IncomingMessage];
    await until(() => accepted.at(-1)!.req.headers['x-request-id'] === response.headers['x-request-id']);
    expect(response.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    caller.terminate();
  });

  it('carries large messages both ways', async () => {
    const { caller } = await opened('chat/echo');
    const message = Buffer.alloc(8 * 1024 * 1024, 'ab');
    caller.send(message);
    const [data] = (await once(caller, 'message')) as [Buffer];
    expect(data.equals(message)).toBe(true);
    caller.terminate();
  });

  it.each(['caller', 'app'] as const)('is closed for both when the %s closes it', async closer => {
    const { caller, app } = await opened('chat/quiet');
    const [from, to] = closer === 'caller' ? [caller, app] : [app, caller];
    const closed = once(to, 'close');
    from.close(4001, 'enough');
    expect((await closed)[0]).toBe(4001);
  });

  it.each(['caller', 'app'] as const)(
    'is closed for both when the connection of the %s breaks',
    async breaker => {
      const { caller, app } = await opened('chat/quiet');
      const [from, to] = breaker === 'caller' ? [caller, app] : [app, caller];
      const closed = once(to, 'close');
      underlying(from).resetAndDestroy();
      expect((await closed)[0]).toBe(1006);
    },
  );

  it('delivers the last bytes of an app that closes its connection, to a caller who reads late', async () => {
    const { caller, app } = await opened('chat/quiet');
    caller.pause();
    const message = Buffer.alloc(6 * 1024 * 1024, 'z');
    app.send(message);
    underlying(app).end();
    await stalled(() => underlying(app).bytesWritten);
    caller.resume();
    const [data] = (await once(caller, 'message')) as [Buffer];
    expect(data.equals(message)).toBe(true);
    await once(caller, 'close');
  });
});

describe('webhookEndpoint on a WebSocket', () => {
  it('has no effect at all: no delivery, no check, and the app sees it', async () => {
    const inbox = await openInbox();
    const target = encodeURIComponent(inbox.url);
    const { caller, req } = await opened(`chat/echo?webhookEndpoint=${target}`, {
      'X-Webhook-Secret': 'hush',
    });
    expect(req.url).toBe(`/echo?webhookEndpoint=${target}`);
    caller.send('hello');
    await once(caller, 'message');
    caller.close();
    await once(caller, 'close');
    const bad = await opened('chat/echo?webhookEndpoint=http://10.0.0.1/&webhookEndpoint=');
    bad.caller.terminate();
    // Something that is delivered, so that the other would have been by now.
    const call = await fetch(service.base + service.path('chat/refuse', inbox.url), {
      headers: { Authorization: `Bearer ${service.token}` },
    });
    await inbox.of(call.headers.get('x-request-id')!);
    expect(inbox.received).toHaveLength(1);
    await inbox.close();
  });
});

describe('a handshake', () => {
  const refusal = async (socket: WebSocket): Promise<IncomingMessage> =>
    ((await once(socket, 'unexpected-response')) as [unknown, IncomingMessage])[1];

  it('that the app refuses reaches the caller as the app answered it', async () => {
    const response = await refusal(dialled('chat/refuse'));
    expect([response.statusCode, response.headers['x-why']]).toEqual([403, 'because']);
    expect(response.headers['x-request-id']).toBeDefined();
  });

  it.each([
    ['a bad token', 'chat/x', { Authorization: 'Bearer nonsense' }, 401],
    ['no such app', 'none/x', {}, 404],
    ['a function, which has no WebSockets', 'fn/run', {}, 400],
  ])('is refused for %s', async (_what, path, headers, status) => {
    const response = await refusal(dialled(path, headers));
    expect(response.statusCode).toBe(status);
    expect(response.headers['content-type']).toBe('application/problem+json');
    expect(response.headers['x-request-id']).toBeDefined();
  });

  const handshake = (extra: string[], method = 'GET'): string =>
    [
      `${method} /v4/${PROJECT}/chat/echo HTTP/1.1`,
      'Host: t',
      `Authorization: Bearer ${service.token}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...extra,
      '',
      '',
    ].join('\r\n');

  it.each([
    ['a length', ['Content-Length: 5'], 'hello'],
    ['chunks', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n'],
  ])('with a body of %s is refused', async (_what, headers, body) => {
    const before = accepted.length;
    const caller = await converse(service.port);
    caller.send(handshake(headers) + body);
    await caller.until('"run_id"');
    expect(caller.text).toMatch(/^HTTP\/1\.1 400 /);
    expect(accepted).toHaveLength(before);
    caller.close();
  });

  it('sends on what the caller sent right behind it', async () => {
    const caller = await converse(service.port);
    // A masked frame with the text "hi", in the same packet.
    const frame = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]);
    caller.send(Buffer.concat([Buffer.from(handshake([])), frame]));
    expect((await caller.until('\x81\x02hi')).split('\r\n\r\n')).toEqual([
      expect.stringContaining(' 101 '),
      '\x81\x02hi',
    ]);
    caller.close();
  });

  it('for another protocol, or by another method, is a plain call', async () => {
    const caller = await converse(service.port);
    caller.send(handshake(['Content-Length: 0'], 'POST'));
    expect(await caller.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 (400|405|426) /);
    caller.close();
    const other = await converse(service.port);
    other.send(handshake([]).replace('Upgrade: websocket', 'Upgrade: h2c'));
    expect(await other.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 426 Upgrade Required/);
    other.close();
  });
});

describe('a gateway in front of hand-written apps', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await openRig();
  });
  afterAll(() => rig.stop());

  const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  const upgrading = { headers: ['Connection: Upgrade', 'Upgrade: websocket'] };

  it.each(['caller', 'app'] as const)(
    'holds back the %s while the other side does not read',
    async sender => {
      const { promise, resolve } = Promise.withResolvers<Socket>();
      const path = rig.raw.play(socket => {
        socket.write(SWITCHING);
        resolve(socket);
      });
      const caller = await rig.converse();
      caller.send(rig.head({ app: 'raw', path, ...upgrading }));
      const app = await promise;
      await caller.until('\r\n\r\n');
      const [from, to] = sender === 'caller' ? [caller.socket, app] : [app, caller.socket];
      to.removeAllListeners('data').pause();
      const size = 64 * 1024 * 1024;
      const { sent, done } = flood(from, size);
      expect(await stalled(sent)).toBeLessThan(40 * 1024 * 1024);
      let got = 0;
      to.on('data', chunk => (got += chunk.length)).resume();
      await done;
      await until(() => got === size);
      caller.close();
    },
  );

  it('answers 502 for an app that nobody can reach', async () => {
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'nowhere', path: 'x', ...upgrading }));
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 502 [^]*"app_unreachable"/);
  });

  it('closes the app when the caller leaves during the handshake', async () => {
    const { promise, resolve } = Promise.withResolvers<Socket>();
    const path = rig.raw.play(resolve);
    const caller = await rig.converse();
    caller.send(rig.head({ app: 'raw', path, ...upgrading }));
    const socket = await promise;
    socket.resume();
    caller.close();
    await once(socket, 'close');
    expect(rig.calls.at(-1)?.status).toBe(499);
  });

  it('stops at once though a handshake is under way and a WebSocket is open', async () => {
    const own = await openRig();
    const asked = Promise.withResolvers<void>();
    const never = own.raw.play(() => asked.resolve());
    const waiting = await own.converse();
    waiting.send(own.head({ app: 'raw', path: never, ...upgrading }));
    await asked.promise;
    const joined = own.raw.play(socket => {
      socket.write(SWITCHING);
    });
    const open = await own.converse();
    open.send(own.head({ app: 'raw', path: joined, ...upgrading }));
    await open.until('101 Switching Protocols');
    await own.stop(10_000);
    expect(await Promise.all([waiting.end(), open.end()])).toEqual(['', expect.stringContaining(' 101 ')]);
  });
});
