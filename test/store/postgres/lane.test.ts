/** A lane by itself, over batches that end as the test says. */
import { DatabaseError } from 'pg';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/clock.ts';
import { createLane } from '../../../src/store/postgres/lane.ts';
import { createPersistence } from '../../../src/store/postgres/persistence.ts';

interface Batch {
  readonly operations: readonly number[];
  readonly replay: boolean;
  /** Ends it well, or by an error. */
  end(error?: Error): Promise<void>;
}

const MIB = 1024 * 1024;
const GONE = new Error('Connection terminated unexpectedly');
const BAD = Object.assign(new DatabaseError('bad', 0, 'error'), { code: '22P02' });

/** Everything that is ready to run has run. */
const settled = () => new Promise<void>(resolve => setImmediate(resolve));

/** An operation is a number, also its size; its result is the number. */
function rig({ width = 1, length = 500 } = {}) {
  const batches: Batch[] = [];
  const pauses: { ms: number; end: () => void }[] = [];
  const tries: (string | undefined)[] = [];
  const givenUp: number[] = [];
  const clock: Clock = {
    now: () => 0,
    elapsed: () => 0,
    after(ms, end) {
      pauses.push({ ms, end });
      return () => {};
    },
  };
  const persistence = createPersistence(clock);
  const lane = createLane<number, number>({
    width,
    length,
    sizeOf: operation => operation,
    persistence,
    onTry: fault => tries.push(fault),
    onGivenUp: operations => givenUp.push(operations),
    run: (operations, replay) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error) => {
          if (error === undefined) resolve(operations);
          else reject(error);
          return settled();
        };
        batches.push({ operations, replay, end });
      }),
  });
  const submit = (...operations: number[]) => Promise.all(operations.map(each => lane.submit(each)));
  return { submit, batches, pauses, tries, givenUp, persistence };
}

const sizes = (batches: readonly Batch[]) => batches.map(({ operations }) => operations.length);

describe('a lane', () => {
  it('takes together what comes together, and then what came meanwhile', async () => {
    const { submit, batches } = rig();
    const early = submit(1, 2);
    await settled();
    const late = submit(3, 4, 5);
    await settled();
    expect(sizes(batches)).toEqual([2]);
    await batches[0]!.end();
    expect(sizes(batches)).toEqual([2, 3]);
    await batches[1]!.end();
    expect(await Promise.all([early, late])).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
  });

  it('has as many batches on their way as it is wide', async () => {
    const { submit, batches } = rig({ width: 2 });
    const all = [];
    for (const operation of [1, 2, 3, 4]) {
      all.push(submit(operation));
      await settled();
    }
    expect(sizes(batches)).toEqual([1, 1]);
    await batches[1]!.end();
    expect(sizes(batches)).toEqual([1, 1, 2]);
    await batches[0]!.end();
    await batches[2]!.end();
    expect((await Promise.all(all)).flat()).toEqual([1, 2, 3, 4]);
  });

  it.each([
    { what: 'operations', operations: Array(5).fill(1), batches: [2, 2, 1] },
    { what: 'bytes', operations: Array(3).fill(5 * MIB), batches: [1, 1, 1] },
    { what: 'one that is too large', operations: [9 * MIB, 1], batches: [1, 1] },
  ])('bounds a batch: $what', async ({ operations, batches: expected }) => {
    const { submit, batches } = rig({ length: 2 });
    const all = submit(...operations);
    await settled();
    for (let i = 0; i < expected.length; i += 1) await batches[i]!.end();
    await all;
    expect(sizes(batches)).toEqual(expected);
  });

  it('keeps a batch through faults, saying that it may have been done', async () => {
    const { submit, batches, pauses, tries } = rig();
    const result = submit(1);
    await settled();
    for (let i = 0; i < 6; i += 1) {
      await batches[i]!.end(GONE);
      pauses[i]!.end();
      await settled();
    }
    await batches[6]!.end();
    expect(await result).toEqual([1]);
    expect(pauses.map(({ ms }) => ms)).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(tries).toEqual([...Array(6).fill(GONE.message), undefined]);
    expect(batches.map(({ replay }) => replay)).toEqual([false, ...Array(6).fill(true)]);
  });

  it('fails an operation alone', async () => {
    const { submit, batches, tries } = rig();
    const results = Promise.allSettled([1, 2, 3].map(async each => (await submit(each))[0]));
    await settled();
    const outcomes = [BAD, BAD, undefined, BAD, undefined]; // all; 1 and 2; 1; 2; 3
    for (const [i, outcome] of outcomes.entries()) await batches[i]!.end(outcome);
    expect(batches.map(({ operations }) => operations)).toEqual([[1, 2, 3], [1, 2], [1], [2], [3]]);
    expect(await results).toMatchObject([{ value: 1 }, { reason: BAD }, { value: 3 }]);
    expect(tries).toEqual([undefined]);
  });

  it('gets one last try when the store closes, and then gives up all that it has', async () => {
    const { submit, batches, givenUp, persistence } = rig();
    const results = Promise.allSettled([submit(1), submit(2)]);
    await settled();
    await batches[0]!.end(GONE);
    const late = Promise.allSettled([submit(3)]);
    persistence.stop();
    await settled();
    expect(batches).toHaveLength(2);
    await batches[1]!.end(GONE);
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect((await late).map(({ status }) => status)).toEqual(['rejected']);
    expect(givenUp).toEqual([3]);
    expect(batches).toHaveLength(2);
  });
});
