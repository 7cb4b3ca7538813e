/**
 * Answers of runs that are too large for memory pass through from where they lie; what is opened for them is
 * closed again, however it ends.
 */
import { readdirSync, readlinkSync, truncateSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '../../src/store/runs.ts';
import type { Body } from '../../src/store/store.ts';
import { spooledBody } from '../store/samples.ts';
import { callRaw } from '../support/caller.ts';
import { converse } from '../support/conversation.ts';
import { stalled, until } from '../support/waiting.ts';
import { type ApiRig, envelopeOf, openApi, openRig, pathOf, PROJECT, T } from './rig.ts';

const MEGABYTES = 8;

/** With a number that no double holds at its end. */
const LONG = `"status_code":200,"result":{"text":"${'é'.repeat(MEGABYTES * 512 * 1024)}","n":12345678901234567890}`;

const ENDED: RunRecord = {
  runId: uuidv7(),
  projectId: PROJECT,
  app: 'hello',
  state: 'succeeded',
  createdAt: T,
  starts: 1,
  cancelling: false,
  endedAt: T,
  statusCode: 200,
};
const PATH = pathOf(ENDED.runId);

/** What fetch says, before the head and after it. */
const CUT_OFF = /fetch failed|terminated/;

/** A body in pieces, and how it is read. */
function inPieces(bytes: Buffer, piece = 100_000, failAt = Number.POSITIVE_INFINITY) {
  const reading = { pieces: 0, open: 0 };
  async function* pieces(): AsyncGenerator<Uint8Array> {
    reading.open += 1;
    try {
      for (let at = 0; at < bytes.length; at += piece) {
        if (at >= failAt) throw new Error('the store went away');
        reading.pieces += 1;
        yield bytes.subarray(at, at + piece);
      }
    } finally {
      reading.open -= 1;
    }
  }
  return { reading, body: { size: bytes.length, pieces } };
}

/** The API over a run whose answer is this body. */
const openWith = (body: Body): Promise<ApiRig> =>
  openApi({ find: async () => ENDED, result: async () => body });

/** The API over a run whose answer lies in a file. */
async function openWithFile() {
  const rig = await openRig();
  const run = await rig.insert();
  const envelope = envelopeOf(run, LONG);
  await rig.end(run, { result: await spooledBody(rig.spoolDir, run.runId, Buffer.from(envelope)) });
  return { rig, envelope, path: pathOf(run.runId), file: join(rig.spoolDir, run.runId) };
}

/** Those of this process that are of this file. */
function openFiles(file: string): number {
  const links = readdirSync('/proc/self/fd').map(fd => {
    try {
      return readlinkSync(join('/proc/self/fd', fd));
    } catch {
      return ''; // the one of the listing itself
    }
  });
  return links.filter(link => link === file).length;
}

describe('a long answer', () => {
  it('comes whole from a file', async () => {
    const { rig, envelope, path, file } = await openWithFile();
    const { status, headers, text } = await rig.get(path);
    expect(status).toBe(200);
    expect(text.startsWith('{"state":"succeeded",')).toBe(true);
    expect(text.endsWith(`,${envelope.slice(1)}`)).toBe(true);
    expect(headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    await expect.poll(() => openFiles(file)).toBe(0);
  });

  it('comes whole in pieces', async () => {
    const envelope = Buffer.from(`{${LONG}}`);
    const { reading, body } = inPieces(envelope);
    const rig = await openWith(body);
    const { text } = await rig.get(PATH);
    expect(text.endsWith(`,${envelope.toString().slice(1)}`)).toBe(true);
    await until(() => reading.open === 0);
  });

  it.each([1, 2, 3, 7])('comes whole in pieces of %i bytes', async piece => {
    const { body } = inPieces(Buffer.from('{"result":12345678901234567890}'), piece);
    const rig = await openWith(body);
    expect((await rig.get(PATH)).text).toMatch(/,"starts":1,"result":12345678901234567890\}$/);
  });

  it('is let go of when the caller hangs up midway', async () => {
    const { reading, body } = inPieces(Buffer.alloc(64 * 1024 * 1024, 'x'), 64 * 1024);
    const rig = await openWith(body);
    const caller = await converse(rig.port);
    caller.send(`GET ${PATH} HTTP/1.1\r\nHost: test\r\n\r\n`);
    caller.socket.pause();
    expect(await stalled(() => reading.pieces)).toBeLessThan(1024); // no faster than it is read
    expect(reading.open).toBe(1);
    caller.close();
    await until(() => reading.open === 0);
    expect(rig.lines).toEqual([]);
  });

  it('has its file closed when the caller hangs up midway', async () => {
    const { rig, path, file } = await openWithFile();
    const caller = await converse(rig.port);
    caller.socket.once('data', () => caller.socket.pause());
    caller.send(`GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`);
    await until(() => openFiles(file) === 1);
    caller.close();
    await expect.poll(() => openFiles(file)).toBe(0);
  });

  it('is opened for nobody who only asks for the head', async () => {
    const { reading, body } = inPieces(Buffer.from(`{${LONG}}`));
    const rig = await openWith(body);
    const { length } = Buffer.from((await rig.get(PATH)).text);
    await until(() => reading.open === 0);
    const answer = await callRaw({ port: rig.port, method: 'HEAD', path: PATH });
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
    expect(answer.header('content-length')).toBe(String(length));
    expect(reading.open).toBe(0);
  });
});

describe('an answer that cannot be read', () => {
  it('has expired where its file is gone', async () => {
    const { rig, path, file } = await openWithFile();
    await rm(file);
    const { json } = await rig.get(path);
    expect(json).toMatchObject({ app: 'hello', status_code: 200, result_expired: true });
  });

  it('has expired where its pieces are gone', async () => {
    const rig = await openWith({ size: 10, pieces: async function* () {} });
    expect((await rig.get(PATH)).json).toMatchObject({ result_expired: true });
  });

  it.each([
    ['fails', (rest: Buffer) => inPieces(rest, 1_000, 5_000).body],
    ['ends early', (rest: Buffer) => ({ ...inPieces(rest).body, size: rest.length + 1 })],
    ['is longer than it should be', (rest: Buffer) => ({ ...inPieces(rest, 1_000).body, size: 5_000 })],
  ])('is cut off with its connection, where it %s midway', async (_, broken) => {
    const rig = await openWith(broken(Buffer.from(`{"result":"${'x'.repeat(20_000)}"}`)));
    await expect(rig.get(PATH)).rejects.toThrow(CUT_OFF);
    expect(rig.lines).toMatchObject([
      { level: 'error', msg: 'the answer of a run could not be read to its end' },
    ]);
  });

  it('is cut off where its file is too short', async () => {
    const { rig, path, file } = await openWithFile();
    truncateSync(file, 1_000_000);
    await expect(rig.get(path)).rejects.toThrow(CUT_OFF);
    await expect.poll(() => openFiles(file)).toBe(0);
  });

  it('is a failure of the service where nothing was sent yet', async () => {
    const rig = await openWith(inPieces(Buffer.from('{"a":1}'), 1, 0).body);
    const { status, json } = await rig.get(PATH);
    expect([status, json]).toMatchObject([500, { code: 'internal_error' }]);
  });
});
