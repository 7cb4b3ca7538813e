/** The body of an asynchronous call before a disk that cannot keep up; the rest is told in async-body.test.ts. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { MemoryGauge, type Spool, type SpoolFile } from '../../src/exchange/spool.ts';
import { IncomingBody } from '../../src/gateway/incoming-body.ts';
import { silentLogger } from '../../src/log.ts';
import { dial } from '../support/caller.ts';

const SIZE = 8 * 1024 * 1024;

/** A file whose disk is always behind, until it is told to catch up. */
function slowFile(): { file: SpoolFile; size: () => number; catchUp: () => void } {
  let size = 0;
  let drained = (): void => {};
  const file: Pick<SpoolFile, 'append' | 'whenDrained'> = {
    append(bytes) {
      size += bytes.length;
      return false;
    },
    whenDrained(callback) {
      drained = callback;
    },
  };
  return { file: file as SpoolFile, size: () => size, catchUp: () => drained() };
}

async function uploading(): Promise<IncomingMessage> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const requested = once(server, 'request') as Promise<[IncomingMessage]>;
  const caller = await dial((server.address() as AddressInfo).port);
  caller.write(`POST / HTTP/1.1\r\nHost: t\r\nContent-Length: ${SIZE}\r\n\r\n`);
  caller.write(Buffer.alloc(SIZE));
  onTestFinished(() => {
    caller.destroy();
    server.close();
  });
  const [req] = await requested;
  return req;
}

it('holds the caller back while the disk is behind, and loses nothing', async () => {
  const { file, size, catchUp } = slowFile();
  const req = await uploading();
  const spool: Spool = { memory: new MemoryGauge(), create: () => file, async start() {} };
  const body = new IncomingBody({ req, limit: SIZE, spool, name: 'n', log: silentLogger, inspect() {} });
  /** At each pause, how much had been taken then, and a turn of the loop later. */
  const pauses: Array<readonly [number, number]> = [];
  req.on('pause', () => {
    const taken = size();
    setImmediate(() => {
      pauses.push([taken, size()]);
      catchUp();
    });
  });
  expect(await body.read()).toBe(true);
  expect(size()).toBe(SIZE);
  expect(pauses.length).toBeGreaterThan(2);
  expect(pauses.filter(([then, later]) => later > then)).toEqual([]);
  expect(spool.memory.used).toBe(0);
});
