/**
 * One process among those that share a database: its name, which tells who died when another takes over, and
 * the folder of its own that holds what it captures until that is in the database.
 *
 * A name is host, process id and something random, so nobody has it twice. A folder whose process is gone was
 * left by a crash: nothing in it was acknowledged, and the next process on this host removes it.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Logger } from './log.ts';
import { directoryError, ensureDirectory } from './store/directory.ts';

export function newNodeId(): string {
  return `${ownHost()}-${process.pid}-${randomBytes(6).toString('hex')}`;
}

export interface ScratchOptions {
  /** The data directory; several processes may share it. */
  readonly data: string;
  readonly nodeId: string;
  readonly log: Logger;
}

export interface Scratch {
  readonly dir: string;
  /** Makes the folder (mode 0700) and removes those of processes that are gone. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function createScratch({ data, nodeId, log }: ScratchOptions): Scratch {
  const all = join(data, 'scratch');
  const dir = join(all, nodeId);

  async function remove(path: string): Promise<void> {
    try {
      await rm(path, { recursive: true, force: true });
    } catch (error) {
      log.warn({ err: error as Error, path }, 'a folder of scratch files could not be removed');
    }
  }

  return {
    dir,
    async start() {
      ensureDirectory(dir);
      const abandoned = foldersIn(all).filter(name => name !== nodeId && isAbandoned(all, name));
      await Promise.all(abandoned.map(name => remove(join(all, name))));
    },
    stop: () => remove(dir),
  };
}

function foldersIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    throw directoryError(dir, error);
  }
}

// Where the directory is shared between hosts or containers, only the own host's processes can be seen.
function isAbandoned(all: string, name: string): boolean {
  const host = `${ownHost()}-`;
  const pid = name.startsWith(host) ? /^(\d+)-[0-9a-f]{12}$/.exec(name.slice(host.length))?.[1] : undefined;
  if (pid === undefined) return false;
  // In a container a process often has the id of the one before it.
  return Number(pid) === process.pid ? precedesThisProcess(join(all, name)) : !isAlive(Number(pid));
}

function precedesThisProcess(path: string): boolean {
  const began = Date.now() - process.uptime() * 1000;
  return (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? began) < began;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** As far as it can be part of a file's name. */
function ownHost(): string {
  return hostname().replaceAll(/[^A-Za-z0-9.-]/g, '_');
}
