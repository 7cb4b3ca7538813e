/**
 * Which processes are left: by their id, or by a mark in the environment that they were started with, which
 * every descendant inherits. Linux alone tells (/proc); one that has ended but was not yet waited for is
 * not alive.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { vi } from 'vitest';

const SOON = { timeout: 10_000, interval: 10 };

/** One letter: T is stopped. Undefined where there is none. */
export function stateOf(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name before the state may hold anything, parentheses too.
  return stat?.charAt(stat.lastIndexOf(')') + 2);
}

export function isAlive(pid: number): boolean {
  const state = stateOf(pid);
  return state !== undefined && !'ZX'.includes(state);
}

/** Ids of the processes that live and have `NAME=value` in their environment. */
export function aliveWith(mark: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => read(`/proc/${pid}/environ`)?.split('\0').includes(mark))
    .map(Number)
    .filter(isAlive);
}

/** Throws unless they end soon. */
export async function untilNoneAlive(mark: string): Promise<void> {
  await vi.waitUntil(() => aliveWith(mark).length === 0, SOON);
}

export async function untilEnded(pid: number): Promise<void> {
  await vi.waitUntil(() => !isAlive(pid), SOON);
}

/** Undefined where the process is gone, or belongs to somebody else. */
function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}
