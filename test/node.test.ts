/** The name of a node and its folder of scratch files. */
import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StartError } from '../src/errors.ts';
import { silentLogger } from '../src/log.ts';
import { createScratch, newNodeId } from '../src/node.ts';
import { temporaryDirectory } from './store/samples.ts';

function scratchIn(data: string) {
  return createScratch({ data, nodeId: newNodeId(), log: silentLogger });
}

/** Leaves a folder with a file in it, as a process that was killed would. */
function leave(data: string, name: string, at = new Date()): string {
  const dir = join(data, 'scratch', name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'answer'), 'captured');
  utimesSync(dir, at, at);
  return name;
}

/** Above what a system gives to any process. */
const NOBODY = 2 ** 30;
const HEX = '0123456789ab';

describe('the name of a node', () => {
  it('tells its host and its process, and is never the same', () => {
    const name = newNodeId();
    expect(name).toContain(`-${process.pid}-`);
    expect(name.startsWith(hostname().slice(0, 3))).toBe(true);
    expect(name).toMatch(/^[A-Za-z0-9._-]+$/);
    expect(newNodeId()).not.toBe(name);
  });
});

describe('the folder of scratch files', () => {
  it('is for its owner alone, and goes with the process', async () => {
    const data = join(temporaryDirectory(), 'made', 'here');
    const scratch = scratchIn(data);
    await scratch.start();
    expect(statSync(scratch.dir).mode & 0o777).toBe(0o700);
    writeFileSync(join(scratch.dir, 'answer'), 'captured');
    await scratch.stop();
    expect(readdirSync(join(data, 'scratch'))).toEqual([]);
  });

  it('is removed by the next process where its own is gone, and left alone otherwise', async () => {
    const data = temporaryDirectory();
    const host = newNodeId().slice(0, -`-${process.pid}-${HEX}`.length);
    leave(data, `${host}-${NOBODY}-${HEX}`);
    leave(data, `${host}-${process.pid}-${HEX}`, new Date(Date.now() - process.uptime() * 1000 - 60_000));
    const kept = [
      leave(data, `${host}-${process.pid}-ba9876543210`),
      leave(data, `${host}-${process.ppid}-${HEX}`),
      leave(data, `elsewhere-${NOBODY}-${HEX}`),
      leave(data, 'something-else'),
    ];
    const scratch = scratchIn(data);
    await scratch.start();
    const own = scratch.dir.slice(join(data, 'scratch').length + 1);
    expect(readdirSync(join(data, 'scratch')).sort()).toEqual([...kept, own].sort());
    await scratch.stop();
    expect(readdirSync(join(data, 'scratch')).sort()).toEqual(kept.sort());
  });

  it('cannot be below a file', async () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    const starting = scratchIn(file).start();
    await expect(starting).rejects.toThrow(StartError);
    await expect(starting).rejects.toThrow('is a file');
  });
});
