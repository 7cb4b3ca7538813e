/**
 * The values of an iterator as server-sent events, each on its way before the next is asked for, and none
 * asked for while the caller does not keep up. The iterator is closed when the caller hangs up.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { describeError, report, UnserializableResult } from './error.ts';
import { isBytes, toJson } from './serialize.ts';

export type ValueIterator = Iterator<unknown> | AsyncIterator<unknown>;

/** What a generator, an iterator or a ReadableStream gives; arrays, maps and the like are values. */
export function iteratorOf(result: unknown): ValueIterator | undefined {
  if (typeof result !== 'object' || result === null) return undefined;
  if (Symbol.asyncIterator in result) return (result as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  const isIterator = Symbol.iterator in result && 'next' in result && typeof result.next === 'function';
  return isIterator ? (result as IterableIterator<unknown>)[Symbol.iterator]() : undefined;
}

export interface StreamedAnswer {
  readonly res: ServerResponse;
  /** Aborts when the caller hangs up. */
  readonly signal: AbortSignal;
}

/** An error before the first value is thrown: nothing has been answered yet. */
export async function answerStream(iterator: ValueIterator, answer: StreamedAnswer): Promise<void> {
  const { res, signal } = answer;
  const close = async (): Promise<void> => {
    try {
      await iterator.return?.();
    } catch (error) {
      report(error);
    }
  };
  // An iterator may be waiting for its next value when the caller hangs up.
  const hungUp = (): void => void close();
  signal.addEventListener('abort', hungUp);
  try {
    const first = signal.aborted ? undefined : await nextEvent(iterator, 0);
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    await sendEvents(first, iterator, answer);
  } finally {
    signal.removeEventListener('abort', hungUp);
    await close();
  }
  res.end();
}

async function sendEvents(
  first: string | undefined,
  iterator: ValueIterator,
  { res, signal }: StreamedAnswer,
): Promise<void> {
  try {
    let event = first;
    for (let index = 1; event !== undefined && !signal.aborted; index++) {
      if (!res.write(event)) await once(res, 'drain', { signal }).catch(() => {});
      // A turn of the loop for each value: it leaves, other calls go on, and a hang-up is noticed.
      await turn();
      event = signal.aborted ? undefined : await nextEvent(iterator, index);
    }
  } catch (error) {
    report(error);
    res.write(`event: error\ndata: ${JSON.stringify(describeError(error))}\n\n`);
  }
}

async function nextEvent(iterator: ValueIterator, index: number): Promise<string | undefined> {
  const step = await iterator.next();
  if (step.done === true) return undefined;
  const value = await step.value;
  if (isBytes(value)) throw new UnserializableResult(`result[${index}] is bytes, which an event cannot hold`);
  return `data: ${toJson(value, `result[${index}]`)}\n\n`;
}
