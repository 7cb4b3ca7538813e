/** What an acknowledgement is worth: a killed process leaves every acknowledged delivery behind, and no lock. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StartError } from '../../../src/errors.ts';
import { temporaryDirectory } from '../samples.ts';
import { openTestStore } from './opening.ts';

const ROUNDS = 10;
const INSERTER = fileURLToPath(new URL('./inserter.ts', import.meta.url));

interface Inserter {
  readonly process: ChildProcess;
  /** Every line it has printed. */
  readonly lines: string[];
  /** Resolves once so many lines are there. */
  printed(count: number): Promise<void>;
  kill(): Promise<void>;
}

interface InserterOptions {
  readonly dir: string;
  readonly streams?: number;
  /** A command that runs the command after it. */
  readonly under?: readonly string[];
}

function startInserter({ dir, streams = 16, under = [] }: InserterOptions): Inserter {
  const [command, ...args] = [...under, process.execPath, INSERTER, dir, String(streams)];
  // A group of its own, so that what it runs under dies with it.
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const lines: string[] = [];
  const reader = createInterface(child.stdout);
  reader.on('line', line => lines.push(line));
  const ended = once(child, 'close');
  const kill = async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL');
    await ended;
  };
  onTestFinished(kill);
  return {
    process: child,
    lines,
    kill,
    async printed(count) {
      while (lines.length < count) {
        await Promise.race([
          once(reader, 'line'),
          ended.then(() => Promise.reject(new Error('the inserter ended'))),
        ]);
      }
    },
  };
}

describe('a process killed with SIGKILL', () => {
  it('has stored every delivery that it acknowledged', { timeout: 60_000 }, async () => {
    const dir = temporaryDirectory();
    const place = { dir, spoolDir: join(dir, 'spool') };
    const acknowledged: string[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const inserter = startInserter({ dir });
      await inserter.printed(2 + round * 37);
      await inserter.kill();
      acknowledged.push(...inserter.lines.slice(1));
    }
    expect(acknowledged.length).toBeGreaterThan(ROUNDS);

    const store = await openTestStore(place);
    const found = await Promise.all(acknowledged.map(runId => store.find(runId)));
    expect(found.filter(record => record?.state !== 'pending')).toEqual([]);
    const pending = (await store.backlog()).pending.get('p-demo')!;
    expect(pending).toBeGreaterThanOrEqual(acknowledged.length);
    expect(await store.recover()).toBe(pending);
    const claimed = await store.claim(pending + 1);
    expect(claimed).toHaveLength(pending);
    for (const { confidential } of claimed.slice(0, 20)) {
      expect(Buffer.from(confidential.secret!).toString()).toBe('a secret');
    }
  });

  it('holds the directory while it lives, and no longer', async () => {
    const dir = temporaryDirectory();
    const place = { dir, spoolDir: join(dir, 'spool') };
    const inserter = startInserter({ dir });
    await inserter.printed(1);

    const refused = await openTestStore(place).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StartError);
    expect((refused as Error).message).toBe(
      `the data directory ${dir} is in use by another process (pid ${inserter.process.pid})`,
    );

    await inserter.kill();
    const store = await openTestStore(place);
    expect(store.available).toBe(true);
  });
});

describe('an acknowledgement', () => {
  it('comes after the sync of what it acknowledges', async ({ skip }) => {
    skip(spawnSync('strace', ['-f', 'true']).status !== 0, 'needs strace');
    const dir = temporaryDirectory();
    const trace = join(temporaryDirectory(), 'trace');
    const under = ['strace', '-f', '-y', '-s', '64', '-e', 'trace=fsync,fdatasync,write', '-o', trace];
    const inserter = startInserter({ dir, streams: 1, under });
    await inserter.printed(6);
    await inserter.kill();

    const RUN_ID = /"[0-9a-f]{8}-[0-9a-f-]{27}\\n"/;
    const events = readFileSync(trace, 'utf8')
      .split('\n')
      .flatMap(line =>
        / f(data)?sync\(.*-wal>/.test(line) ? ['sync'] : RUN_ID.test(line) ? ['acknowledge'] : [],
      );
    const start = events.indexOf('acknowledge') - 1;
    expect(events.slice(start, start + 10)).toEqual(
      Array.from({ length: 5 }, () => ['sync', 'acknowledge']).flat(),
    );
  });
});
