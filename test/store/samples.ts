/** Deliveries, runs, attempts and places on disk for the tests of stores. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, open, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { expect, onTestFinished } from 'vitest';
import type { NewRun } from '../../src/store/runs.ts';
import type { AttemptResult, Body, NewBody, NewDelivery } from '../../src/store/store.ts';

/** A directory that is gone when the test is over. */
export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'afterword-store-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A UUIDv7 of that very millisecond. */
export function runIdAt(ms: number): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(ms, 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export function newDelivery(overrides: Partial<NewDelivery> = {}): NewDelivery {
  return {
    runId: uuidv7(),
    projectId: 'p-demo',
    app: 'hello',
    target: 'https://receiver.example/hook?a=1',
    statusCode: 200,
    createdAt: Date.now(),
    confidential: {},
    body: { bytes: Buffer.from('{"run_id":"x"}') },
    owned: true,
    ...overrides,
  };
}

/** Its run id is of the time at which it came. */
export function newRun(overrides: Partial<NewRun> = {}): NewRun {
  const { createdAt } = overrides;
  return {
    runId: createdAt === undefined ? uuidv7() : runIdAt(Math.floor(createdAt)),
    projectId: 'p-demo',
    app: 'hello',
    createdAt: Date.now(),
    method: 'POST',
    path: '/run',
    headers: ['content-type', 'application/json'],
    ...overrides,
  };
}

export function attempt(number: number, overrides: Partial<AttemptResult> = {}): AttemptResult {
  return { number, startedAt: Date.now(), timings: { queueMs: 0.5, totalMs: 12.25 }, ...overrides };
}

/** A body in the spool, as the capture of a large answer leaves it. */
export async function spooledBody(spoolDir: string, runId: string, bytes: Uint8Array): Promise<NewBody> {
  await mkdir(spoolDir, { recursive: true });
  const file = join(spoolDir, runId);
  await using handle = await open(file, 'wx');
  await handle.writeFile(bytes);
  await handle.sync();
  return { file, size: bytes.byteLength };
}

/** All bytes of a body, whatever way the store gives it back. */
export async function readBody(body: Body | undefined): Promise<Buffer | undefined> {
  if (body === undefined) return undefined;
  if ('bytes' in body) return Buffer.from(body.bytes);
  const pieces: Uint8Array[] = [];
  if ('file' in body) pieces.push(await readFile(body.file));
  else for await (const piece of body.pieces()) pieces.push(piece);
  const whole = Buffer.concat(pieces);
  expect(whole).toHaveLength(body.size);
  return whole;
}
