/**
 * Starts that must not succeed, each as an operator meets it: a real process, its exit code, and a message
 * that says what is wrong, without a stack trace.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { mountTmpfs } from '../store/sqlite/tmpfs.ts';
import { configure, type Place, serve } from '../support/process.ts';

/** The process ends with `code`, and the returned message is all that it has said. */
async function refusal(place: Pick<Place, 'file'>, code: 1 | 2): Promise<string> {
  const service = serve(place);
  expect(await service.ended).toEqual({ code, signal: null });
  expect(service.stderr).not.toMatch(/^\s+at .*:\d+/m);
  expect(service.stderr).toMatch(/^error: /);
  return service.stderr;
}

async function takePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe('serve', () => {
  it('stops at a bad configuration and tells of all its mistakes', async () => {
    const file = join(temporaryDirectory(), 'bad.yaml');
    writeFileSync(file, 'listn: 127.0.0.1:8080\nwebhooks: { attemptTimeout: soon, maxBody: lots }\n');
    const message = await refusal({ file }, 2);
    expect(message.trimEnd().split('\n')).toEqual([
      expect.stringContaining(`${file}:1: listn`),
      expect.stringContaining(`${file}:2: webhooks.attemptTimeout`),
      expect.stringContaining(`${file}:2: webhooks.maxBody`),
    ]);
  });

  it('stops at a configuration that is not there', async () => {
    const file = join(temporaryDirectory(), 'none.yaml');
    expect(await refusal({ file }, 2)).toContain(file);
  });

  it.each(['listen', 'admin'])('stops at a taken port (%s)', async key => {
    const address = `127.0.0.1:${await takePort()}`;
    expect(await refusal(configure({ more: { [key]: address } }), 1)).toBe(
      `error: cannot listen on ${address}: the port is taken\n`,
    );
  });

  it('stops at a data directory below a file', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    const message = await refusal(configure({ more: { data: join(file, 'data') } }), 1);
    expect(message).toContain(join(file, 'data'));
    expect(message).toContain('is a file');
  });

  it('stops at a data directory that it cannot write', async ({ skip }) => {
    const dir = temporaryDirectory();
    skip(!mountTmpfs(dir, 'ro,size=1m'), 'needs a read-only mount, which is not permitted here');
    expect(await refusal(configure({ more: { data: dir } }), 1)).toBe(
      `error: the data directory ${dir} is not writable (EROFS)\n`,
    );
  });

  it('stops at a data directory that another process uses, which goes on', async () => {
    const place = configure();
    const first = serve(place);
    const { admin } = await first.ready;
    expect(await refusal(place, 1)).toBe(
      `error: the data directory ${place.data} is in use by another process (pid ${first.pid})\n`,
    );
    expect((await fetch(`${admin}/readyz`)).status).toBe(200);
    expect(await first.stop()).toEqual({ code: 0, signal: null });
  });

  it('stops at a data directory of a newer version', async () => {
    const place = configure();
    const service = serve(place);
    await service.ready;
    await service.stop();
    const db = new DatabaseSync(join(place.data, 'afterword.db'));
    db.exec('PRAGMA user_version = 999');
    db.close();
    expect(await refusal(place, 1)).toContain('was written by a newer version of Afterword');
  });

  it('stops at a damaged key in the data directory', async () => {
    const place = configure();
    const service = serve(place);
    await service.ready;
    await service.stop();
    writeFileSync(join(place.data, 'encryption.key'), 'not a key\n');
    expect(await refusal(place, 1)).toContain('encryption.key is damaged');
  });
});
