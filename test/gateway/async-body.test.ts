/**
 * The body of an asynchronous call: kept byte by byte, in memory or in a file, up to a limit; and the callers who
 * break off, stall, or leave too early for their answer.
 */
import { randomBytes } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { REQUEST_SUFFIX, type NewRun, type RunInsertion } from '../../src/store/runs.ts';
import type { Conversation } from '../support/conversation.ts';
import { until } from '../support/waiting.ts';
import { bodyOf, type Call, inserted, openRig, type Rig } from './rig.ts';

const KIB = 1024;
const LIMIT = 4 * KIB * KIB;
const PATH = 'x?async=true';
const CHUNKED = 'Transfer-Encoding: chunked';

let rig: Rig;

beforeAll(async () => {
  rig = await openRig({ maxRequest: LIMIT });
});
afterAll(() => rig.stop());
afterEach(() => {
  rig.runs.accept = inserted;
  if (rig.spool.memory.used !== 0) throw new Error('memory is taken that nobody uses any more');
});

const chunk = (data: string | Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), Buffer.from(data), Buffer.from('\r\n')]);
const LAST_CHUNK = '0\r\n\r\n';

async function begin(call: Partial<Call>): Promise<Conversation> {
  const caller = await rig.converse();
  caller.send(rig.head({ path: PATH, method: 'POST', ...call }));
  return caller;
}

/** No run was made, and nothing is left of what was read. */
async function nothingLeft(from: number, files: readonly string[]): Promise<void> {
  await until(async () => (await rig.spooled()).length === files.length);
  await until(() => rig.spool.memory.used === 0);
  expect(rig.runs.accepted).toHaveLength(from);
}

/** The run of a caller that has sent all it has to send. */
async function runOf(caller: Conversation): Promise<NewRun> {
  await caller.until(/"run_id":"[^"]+"}$/);
  caller.close();
  return rig.runs.accepted.at(-1)!;
}

describe('a body', () => {
  const BYTES = Buffer.from(Array.from({ length: 256 }, (_item, at) => at));

  it.each([
    ['small', BYTES, 'bytes'],
    ['of all that memory may have', randomBytes(64 * KIB), 'bytes'],
    ['of one byte more', randomBytes(64 * KIB + 1), 'file'],
    ['of all that is permitted', randomBytes(LIMIT), 'file'],
  ])('%s is kept as it came, with a length or in chunks', async (_what, body, where) => {
    const declared = await begin({ headers: [`Content-Length: ${body.length}`] });
    declared.send(body);
    const chunked = await begin({ headers: [CHUNKED] });
    for (let at = 0; at < body.length; at += 50_000) chunked.send(chunk(body.subarray(at, at + 50_000)));
    chunked.send(LAST_CHUNK);
    for (const caller of [declared, chunked]) {
      const run = await runOf(caller);
      expect(run.body).toHaveProperty(where);
      expect((await bodyOf(run)).equals(body)).toBe(true);
    }
  });

  it('lies in a file by the name of its run, which is whole when it is handed over', async () => {
    const caller = await begin({ headers: ['Content-Length: 200000'] });
    caller.send(Buffer.alloc(200_000, 'x'));
    const { runId, body } = await runOf(caller);
    expect(body).toEqual({ file: expect.stringMatching(`/${runId}${REQUEST_SUFFIX}$`), size: 200_000 });
    expect(await rig.spooled()).toContain(runId + REQUEST_SUFFIX);
  });

  it.each([
    ['none at all', 'X: y', ''],
    ['a length of 0', 'Content-Length: 0', ''],
    ['no chunk but the last', CHUNKED, LAST_CHUNK],
  ])('is absent where there is %s', async (_what, header, data) => {
    for (const app of ['custom', 'cortex'] as const) {
      const caller = await begin({ app, headers: [header] });
      caller.send(data);
      expect(await runOf(caller)).not.toHaveProperty('body');
    }
  });

  it('has no trailers', async () => {
    const caller = await begin({ headers: [CHUNKED, 'Trailer: X-Late'] });
    caller.send(`${chunk('abc')}0\r\nX-Late: 1\r\nAuthorization: Bearer x\r\n\r\n`);
    const run = await runOf(caller);
    expect(run.headers.join()).not.toMatch(/late|authorization/i);
    expect(await bodyOf(run)).toEqual(Buffer.from('abc'));
  });

  it('is asked for by 100 Continue, once, where its caller waits for that', async () => {
    const caller = await begin({ headers: ['Expect: 100-continue', 'Content-Length: 4'] });
    await caller.until('HTTP/1.1 100 Continue\r\n\r\n');
    expect(caller.text).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    caller.send('body');
    expect(await bodyOf(await runOf(caller))).toEqual(Buffer.from('body'));
  });

  it('is counted in memory until its run is stored', async () => {
    const stored = Promise.withResolvers<RunInsertion>();
    rig.runs.accept = () => stored.promise;
    const before = rig.runs.accepted.length;
    const caller = await begin({ headers: ['Content-Length: 5000'] });
    caller.send(Buffer.alloc(5000));
    await until(() => rig.runs.accepted.length > before);
    expect(rig.spool.memory.used).toBe(5000);
    stored.resolve({ outcome: 'inserted' });
    await runOf(caller);
  });

  it('goes to a file, however small, where all of them have filled their memory', async () => {
    const all = 64 * KIB * KIB;
    rig.spool.memory.take(all);
    const caller = await begin({ headers: ['Content-Length: 5'] });
    caller.send('small');
    const run = await runOf(caller);
    rig.spool.memory.give(all);
    expect(run.body).toMatchObject({ size: 5 });
    expect(await bodyOf(run)).toEqual(Buffer.from('small'));
  });
});

describe('a body that is too large', () => {
  it('is refused at once where its length says so, and is not asked for', async () => {
    const from = rig.runs.accepted.length;
    const headers = [`Content-Length: ${LIMIT + 1}`, 'Expect: 100-continue'];
    const text = await (await begin({ headers })).end();
    expect(text).toMatch(/^HTTP\/1\.1 413 .*"code":"request_too_large"/s);
    expect(text).toContain(`at most ${LIMIT} bytes`);
    expect(rig.runs.accepted).toHaveLength(from);
  });

  it('is refused as soon as too much has come in chunks, before the last', async () => {
    const [from, files] = [rig.runs.accepted.length, await rig.spooled()];
    const caller = await begin({ headers: [CHUNKED] });
    caller.send(chunk(Buffer.alloc(LIMIT)));
    caller.send(chunk('x'));
    await caller.until('request_too_large');
    expect(caller.text).toMatch(/^HTTP\/1\.1 413 .*Connection: close/s);
    caller.close();
    await nothingLeft(from, files);
    expect(rig.calls.at(-1)).toMatchObject({ status: 413, code: 'request_too_large', runtime: 'custom' });
  });
});

describe('parameters that are no JSON object', () => {
  it.each([
    ['at their first byte', chunk('[')],
    ['where they go wrong', Buffer.concat([chunk('{"a":1,'), chunk('}')])],
    ['far within', Buffer.concat([chunk(`{"a":"${'x'.repeat(200_000)}"`), chunk(';')])],
    ['at their end', Buffer.concat([chunk('{"a":1'), Buffer.from(LAST_CHUNK)])],
  ])('are refused %s', async (_what, sent) => {
    const [from, files] = [rig.runs.accepted.length, await rig.spooled()];
    const caller = await begin({ app: 'cortex', headers: [CHUNKED] });
    caller.send(sent);
    expect(await caller.until('"code":"invalid_parameters"')).toMatch(/^HTTP\/1\.1 400 /);
    caller.close();
    await nothingLeft(from, files);
  });
});

describe('a caller who breaks off', () => {
  it.each([
    ['of a small body', 'Content-Length: 10', Buffer.from('12345')],
    ['of a large one', 'Content-Length: 1000000', Buffer.alloc(500_000)],
    ['between two chunks', CHUNKED, chunk(Buffer.alloc(200_000))],
  ])('in the middle %s has made no run, and leaves nothing behind', async (_what, header, part) => {
    const [from, files] = [rig.runs.accepted.length, await rig.spooled()];
    const ends = rig.calls.length;
    const caller = await begin({ headers: [header] });
    caller.send(part);
    if (part.length > 64 * KIB) await until(async () => (await rig.spooled()).length > files.length);
    else await until(() => rig.spool.memory.used > 0);
    caller.close();
    await until(() => rig.calls.length > ends);
    expect(rig.calls.at(-1)).toMatchObject({ status: 499 });
    await nothingLeft(from, files);
  });

  it('after all was sent has made a run', async () => {
    const stored = Promise.withResolvers<RunInsertion>();
    rig.runs.accept = () => stored.promise;
    const [from, ends] = [rig.runs.accepted.length, rig.calls.length];
    const caller = await begin({ headers: ['Content-Length: 200000'] });
    caller.send(Buffer.alloc(200_000, 'x'));
    await until(() => rig.runs.accepted.length > from);
    caller.close();
    // The gateway sees it go before the store answers.
    const other = await rig.converse();
    other.send(rig.head({ path: 'x', app: 'nowhere' }));
    await other.until('app_unreachable');
    other.close();
    stored.resolve({ outcome: 'inserted' });
    await until(() => rig.calls.length > ends + 1);
    expect(rig.calls.at(-1)).toMatchObject({ status: 499 });
    expect(await bodyOf(rig.runs.accepted.at(-1)!)).toHaveLength(200_000);
  });
});

describe('a caller who stalls', () => {
  it('gets 408, and leaves nothing behind', async () => {
    const sockets: Socket[] = [];
    const note = (message: unknown): void => {
      sockets.push((message as { socket: Socket }).socket);
    };
    subscribe('http.server.request.start', note);
    onTestFinished(() => void unsubscribe('http.server.request.start', note));
    const [from, files] = [rig.runs.accepted.length, await rig.spooled()];
    const caller = await begin({ headers: ['Content-Length: 1000000'] });
    caller.send(Buffer.alloc(200_000));
    await until(async () => (await rig.spooled()).length > files.length);
    const [socket] = sockets;
    expect(socket!.timeout).toBeGreaterThan(0);
    await until(() => socket!.bytesRead > 200_000);
    socket!.emit('timeout');
    await caller.until('"code":"request_timeout"');
    expect(caller.text).toMatch(/^HTTP\/1\.1 408 /);
    caller.close();
    await nothingLeft(from, files);
  });
});

describe('a caller who leaves while its token is checked', () => {
  it.each([
    ['an asynchronous one', PATH],
    ['any other', 'x'],
  ])('has made no call, where it had a body to send (%s)', async (_what, path) => {
    const [asked, checked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const own = await openRig({
      authenticated: () => {
        asked.resolve();
        return checked.promise;
      },
    });
    const caller = await own.converse();
    caller.send(own.head({ path, method: 'POST', headers: ['Content-Length: 4'] }));
    caller.send('body');
    await asked.promise;
    caller.socket.resetAndDestroy();
    await until(() => own.connections() === 0);
    checked.resolve();
    await until(() => own.calls.length > 0);
    expect(own.calls.at(-1)).toMatchObject({ status: 499 });
    expect(own.runs.accepted).toEqual([]);
    await own.stop();
  });
});

describe('the gateway, when it stops', () => {
  it('waits until a run is stored, though its caller is gone', async () => {
    const own = await openRig();
    const stored = Promise.withResolvers<RunInsertion>();
    own.runs.accept = () => stored.promise;
    const caller = await own.converse();
    caller.send(own.head({ path: PATH }));
    await until(() => own.runs.accepted.length > 0);
    caller.close();
    let stopped = false;
    const stopping = own.stop(10_000).then(() => (stopped = true));
    await until(() => own.connections() === 0);
    expect(stopped).toBe(false);
    stored.resolve({ outcome: 'inserted' });
    await stopping;
  });

  it('refuses a call that has not come whole by then', async () => {
    const own = await openRig();
    const caller = await own.converse();
    caller.send(own.head({ path: PATH, method: 'POST', headers: ['Content-Length: 10'] }));
    caller.send('12345');
    await until(() => own.spool.memory.used > 0);
    await own.stop();
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 503 .*"code":"shutting_down"/s);
    expect(own.runs.accepted).toEqual([]);
    expect(own.spool.memory.used).toBe(0);
  });
});
