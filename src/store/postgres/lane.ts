/**
 * Group commit for one kind of operation: what is submitted while batches are on their way makes up the next
 * one, with no wait added. A batch is carried through faults of the environment; an operation that fails by
 * itself takes no other with it.
 */
import { isEnvironmental } from './faults.ts';
import type { OnTry, Persistence } from './persistence.ts';

const MAX_BYTES = 8 * 1024 * 1024;

export interface Lane<Operation, Result> {
  submit(operation: Operation): Promise<Result>;
}

export interface LaneOptions<Operation, Result> {
  /** Batches on their way at once. */
  readonly width: number;
  /** Operations in a batch at most. */
  readonly length: number;
  /** Does a batch as a whole, and tells the result of each operation. */
  readonly run: (operations: readonly Operation[], replay: boolean) => Promise<readonly Result[]>;
  /** The bytes that it adds to its batch. */
  readonly sizeOf: (operation: Operation) => number;
  readonly persistence: Persistence;
  readonly onTry?: OnTry;
  /** The store closes, and so many operations could not be done. */
  readonly onGivenUp?: (operations: number, error: unknown) => void;
}

interface Entry<Operation, Result> {
  readonly operation: Operation;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome<Result> = { readonly result: Result } | { readonly error: unknown };

export function createLane<Operation, Result>(
  options: LaneOptions<Operation, Result>,
): Lane<Operation, Result> {
  const { width, run, persistence, onTry, onGivenUp } = options;
  const waiting: Entry<Operation, Result>[] = [];
  let scheduled = false;
  let underWay = 0;

  async function runAll(
    operations: readonly Operation[],
    replay: boolean,
  ): Promise<readonly Outcome<Result>[]> {
    try {
      return (await run(operations, replay)).map(result => ({ result }));
    } catch (error) {
      if (isEnvironmental(error)) throw error;
      if (operations.length === 1) return [{ error }];
    }
    const middle = Math.ceil(operations.length / 2);
    const first = await runAll(operations.slice(0, middle), replay);
    return [...first, ...(await runAll(operations.slice(middle), replay))];
  }

  async function commit(batch: readonly Entry<Operation, Result>[]): Promise<void> {
    const operations = batch.map(entry => entry.operation);
    try {
      const outcomes = await persistence.persist(replay => runAll(operations, replay), onTry);
      for (const [index, entry] of batch.entries()) settle(entry, outcomes[index]!);
    } catch (error) {
      // Nothing but the end of the store ends a batch.
      giveUp([...batch, ...waiting.splice(0)], error);
    }
  }

  function giveUp(entries: readonly Entry<Operation, Result>[], error: unknown): void {
    onGivenUp?.(entries.length, error);
    for (const { reject } of entries) reject(error);
  }

  function pump(): void {
    scheduled = false;
    while (underWay < width && waiting.length > 0) {
      underWay += 1;
      void commit(takeBatch(waiting, options)).finally(() => {
        underWay -= 1;
        pump();
      });
    }
  }

  return {
    submit: operation =>
      new Promise((resolve, reject) => {
        waiting.push({ operation, resolve, reject });
        if (scheduled) return;
        scheduled = true;
        // Everything that the present turn of the event loop submits shares the first batch.
        queueMicrotask(pump);
      }),
  };
}

/** The first operation always goes, whatever its size. */
function takeBatch<Operation, Result>(
  waiting: Entry<Operation, Result>[],
  { length, sizeOf }: Pick<LaneOptions<Operation, Result>, 'length' | 'sizeOf'>,
): Entry<Operation, Result>[] {
  let count = 0;
  let bytes = 0;
  while (count < waiting.length && count < length) {
    bytes += sizeOf(waiting[count]!.operation);
    if (count > 0 && bytes > MAX_BYTES) break;
    count += 1;
  }
  return waiting.splice(0, count);
}

function settle<Operation, Result>(
  { resolve, reject }: Entry<Operation, Result>,
  outcome: Outcome<Result>,
): void {
  if ('error' in outcome) reject(outcome.error);
  else resolve(outcome.result);
}
