/**
 * Streaming both ways (contract, section 1.9): nothing is gathered on the way that could be passed on, and
 * neither side is sent more than the other takes.
 */
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flood } from '../support/flood.ts';
import { stalled } from '../support/waiting.ts';
import { openRig, type Rig, opened } from './rig.ts';

const MIB = 1024 * 1024;
/** Above what the kernel holds for the sockets of two hops, and far below what is sent. */
const BOUND = 48 * MIB;
const SENT = 96 * MIB;

let rig: Rig;

beforeAll(async () => {
  rig = await openRig({ maxBody: MIB });
});
afterAll(() => rig.stop());

describe.each([
  { app: 'custom', hook: false },
  { app: 'custom', hook: true },
  { app: 'cortex', hook: false },
  { app: 'cortex', hook: true },
] as const)('an event stream ($app, webhook: $hook)', ({ app, hook }) => {
  it('arrives event by event, each before the next is written', async () => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ app, path, hook, method: 'POST' }));
    const { res } = await call;
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
    await caller.until('Content-Type: text/event-stream\r\n');
    await caller.until('\r\n\r\n');
    for (let i = 1; i <= 5; i++) {
      res.write(`data: ${i}\n\n`);
      expect(await caller.until(`data: ${i}\n\n`)).not.toContain(`data: ${i + 1}`);
    }
    res.end();
    await caller.until('\r\n0\r\n\r\n');
    caller.close();
  });
});

describe('an answer', () => {
  it.each([false, true])('shows its head before it has any bytes of a body (webhook: %s)', async hook => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ path, hook }));
    const { res } = await call;
    res.writeHead(202, { 'Content-Length': 4, 'X-Early': 'yes' }).flushHeaders();
    expect(await caller.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 202 Accepted\r\n[^]*X-Early: yes\r\n/);
    res.end('done');
    await caller.until('done');
    caller.close();
  });

  it.each([
    ['without a webhook', false],
    ['with a webhook, beyond maxBody', true],
  ])('waits for a caller who does not read, %s, and loses nothing', async (_what, hook) => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.socket.pause();
    caller.send(rig.head({ path, hook, headers: ['Connection: close'] }));
    const { res } = await call;
    const { sent, done } = flood(res, SENT);
    expect(await stalled(sent)).toBeLessThan(BOUND);
    const tally = caller.tally();
    await done;
    res.end();
    const got = await tally;
    expect(got).toBeGreaterThan(SENT);
    expect(got).toBeLessThan(SENT * 1.01);
  });
});

describe('an upload', () => {
  it.each([
    ['of declared length', [`Content-Length: ${SENT}`]],
    ['in chunks', ['Transfer-Encoding: chunked']],
  ])('%s waits for an app that does not read, and loses nothing', async (_what, headers) => {
    const { path, call } = opened(rig);
    const caller = await rig.converse();
    caller.send(rig.head({ path, method: 'PUT', headers }));
    if (headers[0]!.startsWith('T')) caller.send(`${SENT.toString(16)}\r\n`);
    const { sent, done } = flood(caller.socket, SENT);
    const { req, res } = await call;
    expect(await stalled(sent)).toBeLessThan(BOUND);
    let got = 0;
    req.on('data', chunk => (got += chunk.length));
    await done;
    if (headers[0]!.startsWith('T')) caller.send('\r\n0\r\n\r\n');
    await once(req, 'end');
    expect(got).toBe(SENT);
    res.end('thanks');
    await caller.until('thanks');
    caller.close();
  });

  it('and its answer pass at the same time', async () => {
    const path = rig.app.play((req, res) => void req.pipe(res));
    const caller = await rig.converse();
    caller.send(rig.head({ path, method: 'POST', headers: ['Transfer-Encoding: chunked'] }));
    for (const word of ['one', 'two', 'three']) {
      caller.send(`${word.length}\r\n${word}\r\n`);
      await caller.until(word);
    }
    caller.send('0\r\n\r\n');
    expect(await caller.until('\r\n0\r\n\r\n')).toMatch(/one[^]*two[^]*three/);
    caller.close();
  });

  it('in pieces, then a large answer to a caller who reads late, is answered whole', async () => {
    const size = 20 * MIB;
    const path = rig.app.play((req, res) => {
      req.resume().on('end', () => res.end(Buffer.alloc(size)));
    });
    const caller = await rig.converse();
    caller.socket.pause();
    const headers = [`Content-Length: ${MIB}`, 'Connection: close'];
    caller.send(rig.head({ path, method: 'POST', headers }));
    caller.send(Buffer.alloc(MIB));
    await stalled(() => caller.socket.bytesWritten);
    expect(await caller.tally()).toBeGreaterThan(size);
  });
});
