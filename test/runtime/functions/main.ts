/** What the suite of the runners calls: main.py has the same functions, as far as its language has them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface Context {
  readonly runId: string;
  readonly signal: AbortSignal;
  readonly log: Readonly<Record<'debug' | 'info' | 'warn' | 'error', (...parts: unknown[]) => void>>;
}

/** Tells the test how far a function is, and waits until the test, or another call, is as far. */
const arrive = (folder: string, name: string) => writeFileSync(join(folder, name), '');
const wait = async (folder: string, name: string) => {
  while (!existsSync(join(folder, name))) await sleep(5);
};

class OutOfStock extends Error {}

export const echo = ({ value }: { value: unknown }) => value;
export const nothing = () => {};
export const teapot = () => ({ status_code: 418, message: 'short and stout' });
export const deny = () => {
  throw new OutOfStock('no more pears');
};
export const misuse = () => {
  throw new TypeError('raised inside');
};
export const binary = () => new Uint8Array([0, 255, 10, 128]);
export const who = (_: object, { runId }: Context) => runId;
export const _hidden = () => 'never';
export class Thing {
  name = 'thing';
}
export const constant = 42;

export function deep({ levels }: { levels: number }) {
  let value: unknown = [];
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

export function flawed({ kind }: { kind: string }): unknown {
  const circle: Record<string, unknown> = { name: 'circle' };
  circle['parts'] = [1, { whole: circle }];
  const flaws: Record<string, unknown> = {
    nan: { scores: [1, 2, Number.NaN] },
    infinity: Number.NEGATIVE_INFINITY,
    bigint: { items: [0, 1, 2, 3n] },
    function: { 'call me': () => 1 },
    map: [new Map([['a', 1]])],
    promise: { later: Promise.resolve(1) },
    circle,
  };
  return flaws[kind];
}

export function* count({ to, failAfter = to }: { to: number; failAfter?: number }) {
  for (let number = 1; number <= to; number++) {
    if (number > failAfter) throw new OutOfStock(`no more than ${failAfter}`);
    yield { number };
  }
}
export async function* countAsync(parameters: { to: number; failAfter?: number }) {
  yield* count(parameters);
}
export const countWeb = (parameters: { to: number }) => ReadableStream.from(count(parameters));
export async function* flawedStream() {
  yield 1;
  yield { bad: [Number.NaN] };
}

export async function* gated({ folder }: { folder: string }) {
  yield 'first';
  await wait(folder, 'go');
  yield 'second';
}
export function* endless({ folder }: { folder: string }) {
  try {
    for (let number = 0; ; number++) yield number;
  } finally {
    arrive(folder, 'closed');
  }
}
export async function* silent({ folder }: { folder: string }, { signal }: Context) {
  try {
    yield 'and now nothing';
    await sleep(60_000, undefined, { signal });
  } finally {
    arrive(folder, 'closed');
  }
}
export async function watchful({ folder }: { folder: string }, { signal }: Context) {
  arrive(folder, 'started');
  await once(signal, 'abort');
  arrive(folder, 'aborted');
}

let floods = 0;
export function* flood() {
  for (floods = 0; floods < 1_000; floods++) yield 'x'.repeat(64 * 1024);
}
export const flooded = () => floods;

export async function slow({ folder }: { folder: string }) {
  arrive(folder, 'started');
  await wait(folder, 'go');
  return 'done';
}
export async function meet({ folder, me, other }: { folder: string; me: string; other: string }) {
  process.stdout.write(`${me} waits, `);
  arrive(folder, me);
  await wait(folder, other);
  console.log('and has met', other);
  return me;
}
export const meetAsync = meet;

const outsideOfCalls = AsyncLocalStorage.snapshot();
export async function chatter(_: object, { log }: Context) {
  console.log('two\nlines');
  console.error('to stderr');
  await sleep(1).then(() => console.log('from a task'));
  outsideOfCalls(() => log.info('from the log'));
  process.stdout.write('without an end');
}

export const exit = ({ code }: { code: number }) => process.exit(code);
