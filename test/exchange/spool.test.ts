/**
 * The files of large answers: whole and synced under their final name, gone when discarded, and kept in
 * memory where the disk would not have them.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createSpool, type Spool, type SpoolFile } from '../../src/exchange/spool.ts';
import { createLogger } from '../../src/log.ts';
import type { NewBody } from '../../src/store/store.ts';
import { mountTmpfs } from '../store/sqlite/tmpfs.ts';

const PIECE = Buffer.alloc(300_000, 'p');

let dir: string;
let spool: Spool;
let logs: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'afterword-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  logs = '';
  const log = createLogger({ level: 'debug', destination: { write: line => (logs += line) } });
  spool = createSpool({ dir, log });
  await spool.start();
});

async function fill(file: SpoolFile, pieces: number): Promise<Buffer> {
  for (let i = 0; i < pieces; i++) {
    if (!file.append(PIECE)) await new Promise<void>(resolve => file.whenDrained(resolve));
  }
  return Buffer.concat(Array<Buffer>(pieces).fill(PIECE));
}

async function readAll(file: SpoolFile, offset: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of file.read(offset)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function bytesOf(body: NewBody): Buffer {
  if ('file' in body) throw new Error('it is on disk');
  return Buffer.from(body.bytes);
}

describe('a spool file', () => {
  it('has its final name only once it is whole, for nobody else to read', async () => {
    const file = spool.create('run');
    const whole = await fill(file, 10);
    expect(await readdir(dir)).not.toContain('run');
    expect(file.size).toBe(whole.length);
    const path = join(dir, 'run');
    expect(await file.finish()).toEqual({ file: path, size: whole.length });
    expect(await readdir(dir)).toEqual(['run']);
    expect((await readFile(path)).equals(whole)).toBe(true);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('asks its writer to wait while the disk is behind, and says when it has caught up', async () => {
    const file = spool.create('run');
    expect(file.append(Buffer.alloc(100))).toBe(true);
    expect(file.append(Buffer.alloc(2_000_000))).toBe(false);
    await new Promise<void>(resolve => file.whenDrained(resolve));
    expect(file.append(Buffer.alloc(100))).toBe(true);
    await file.discard();
  });

  it('can be read from any place, what is not on disk yet included', async () => {
    const file = spool.create('run');
    file.append(Buffer.from('0123456789'));
    file.append(Buffer.from('abcdef'));
    for (const offset of [0, 3, 10, 12, 16, 99]) {
      expect((await readAll(file, offset)).toString()).toBe('0123456789abcdef'.slice(offset));
    }
    await file.discard();
  });

  it('leaves nothing behind when it is discarded, at whatever moment', async () => {
    await spool.create('unused').discard();
    const early = spool.create('early');
    early.append(PIECE);
    await early.discard();
    const late = spool.create('late');
    await fill(late, 5);
    await late.discard();
    late.append(PIECE);
    expect(await readdir(dir)).toEqual([]);
  });

  it('lets go of a writer that waits when it is discarded', async () => {
    const file = spool.create('run');
    expect(file.append(Buffer.alloc(2_000_000))).toBe(false);
    const drained = new Promise<void>(resolve => file.whenDrained(resolve));
    await file.discard();
    await drained;
  });

  it('does not meet another of the same run', async () => {
    const [one, other] = [spool.create('run'), spool.create('run')];
    one.append(Buffer.from('one'));
    other.append(Buffer.from('other'));
    await other.discard();
    await one.finish();
    expect(await readFile(join(dir, 'run'), 'utf8')).toBe('one');
  });
});

describe('a disk that refuses', () => {
  it('the first write leaves the answer in memory', async () => {
    await rm(dir, { recursive: true });
    const file = spool.create('run');
    const whole = await fill(file, 8);
    expect((await readAll(file, 0)).equals(whole)).toBe(true);
    expect(bytesOf(await file.finish()).equals(whole)).toBe(true);
    expect(logs).toContain('ENOENT');
  });

  it('the final name leaves the answer in memory', async () => {
    await mkdir(join(dir, 'run', 'in the way'), { recursive: true });
    const file = spool.create('run');
    const whole = await fill(file, 3);
    expect(bytesOf(await file.finish()).equals(whole)).toBe(true);
    expect(await readdir(dir)).toEqual(['run']);
  });

  it('to go on leaves the answer whole, in memory, and nothing on disk', async ({ skip }) => {
    skip(!mountTmpfs(dir, 'size=1m'), 'needs to mount a small file system, which is not permitted here');
    const file = spool.create('run');
    const whole = await fill(file, 10);
    expect((await readAll(file, 1_000)).equals(whole.subarray(1_000))).toBe(true);
    expect(bytesOf(await file.finish()).equals(whole)).toBe(true);
    expect(await readdir(dir)).toEqual([]);
    expect(logs).toContain('ENOSPC');
  });
});
