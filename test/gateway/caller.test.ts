/**
 * A caller that stops sending or reading: told apart from one that is only held back by a slow app.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Caller } from '../../src/gateway/caller.ts';
import { converse } from '../support/conversation.ts';
import { until } from '../support/waiting.ts';

let server: Server;

beforeAll(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function uploading(bytes: number): Promise<{
  req: IncomingMessage;
  res: ServerResponse;
  caller: Caller;
  stalls: () => number;
}> {
  const connection = await converse((server.address() as AddressInfo).port);
  const request = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  connection.send('POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n');
  connection.send(Buffer.alloc(bytes));
  const [req, res] = await request;
  const caller = new Caller(req, res, 'run');
  let stalls = 0;
  caller.watchUpload(() => stalls++);
  return { req, res, caller, stalls: () => stalls };
}

describe('an upload that makes no progress', () => {
  it('has stalled when everything it sent has been taken', async () => {
    const { req, stalls } = await uploading(10);
    req.resume();
    await once(req, 'data');
    req.socket.emit('timeout');
    expect(stalls()).toBe(1);
    expect(req.socket.destroyed).toBe(false);
  });

  it('has not stalled while the app does not take what it sent', async () => {
    const { req, stalls } = await uploading(500_000);
    await until(() => req.readableLength > 0);
    req.socket.emit('timeout');
    expect(stalls()).toBe(0);
    expect(req.socket.timeout).toBeGreaterThan(0);
  });

  it('is cut where its answer has ended already', async () => {
    const { req, res, caller, stalls } = await uploading(10);
    caller.head(200, undefined, ['Content-Length', '2']);
    caller.end(Buffer.from('ok'));
    await once(res, 'finish');
    await until(() => req.readableLength === 0);
    req.socket.emit('timeout');
    expect(stalls()).toBe(0);
    expect(req.socket.destroyed).toBe(true);
  });
});
