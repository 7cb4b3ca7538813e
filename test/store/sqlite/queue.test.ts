/** The group commit by itself, over an engine that does as the test says. */
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/clock.ts';
import { silentLogger } from '../../../src/log.ts';
import type { Reply } from '../../../src/store/sqlite/engine.ts';
import type { Operation } from '../../../src/store/sqlite/protocol.ts';
import { createQueue } from '../../../src/store/sqlite/queue.ts';

interface Commit {
  readonly operations: readonly Operation[];
  readonly replay: boolean;
  answer(reply: Reply): Promise<void>;
}

/** Everything that is ready to run has run. */
const settled = () => new Promise<void>(resolve => setImmediate(resolve));

const done = ({ operations }: Commit): Reply => ({ outcomes: operations.map((_, i) => ({ value: i })) });

function rig() {
  const commits: Commit[] = [];
  const pauses: { ms: number; end: () => void }[] = [];
  const faults: (string | undefined)[] = [];
  const clock: Clock = {
    now: () => 0,
    elapsed: () => 0,
    after(ms, task) {
      pauses.push({ ms, end: task });
      return () => {};
    },
  };
  const queue = createQueue({
    engine: {
      commit: (operations, replay) =>
        new Promise(resolve => {
          const answer = (reply: Reply) => {
            resolve(reply);
            return settled();
          };
          commits.push({ operations, replay, answer });
        }),
    },
    clock,
    log: silentLogger,
    onTry: fault => faults.push(fault),
  });
  const submit = (blob?: Uint8Array) => queue.submit('body', { id: 1 }, [blob]);
  return { queue, submit, commits, pauses, faults };
}

describe('the queue', () => {
  it('commits what is submitted together at once, and the rest after it', async () => {
    const { submit, commits } = rig();
    const early = [submit(), submit()];
    await settled();
    const late = [submit(), submit(), submit()];
    await settled();
    expect(commits.map(({ operations }) => operations.length)).toEqual([2]);
    await commits[0]!.answer(done(commits[0]!));
    expect(commits.map(({ operations }) => operations.length)).toEqual([2, 3]);
    await commits[1]!.answer(done(commits[1]!));
    expect(await Promise.all([...early, ...late])).toEqual([0, 1, 0, 1, 2]);
  });

  it.each([
    { what: 'operations', count: 1_100, size: 0, batches: [512, 512, 76] },
    { what: 'bytes', count: 5, size: 3 * 1024 * 1024, batches: [2, 2, 1] },
    { what: 'one that is too large', count: 3, size: 9 * 1024 * 1024, batches: [1, 1, 1] },
  ])('bounds a batch: $what', async ({ count, size, batches }) => {
    const { submit, commits } = rig();
    const blob = new Uint8Array(size);
    const all = Array.from({ length: count }, () => submit(blob));
    await settled();
    for (let i = 0; i < batches.length; i += 1) await commits[i]!.answer(done(commits[i]!));
    await Promise.all(all);
    expect(commits.map(({ operations }) => operations.length)).toEqual(batches);
  });

  it('keeps a batch through faults, with longer and longer pauses', async () => {
    const { submit, commits, pauses, faults } = rig();
    const result = submit();
    await settled();
    for (let i = 0; i < 6; i += 1) {
      await commits[i]!.answer({ fault: 'full', lost: false });
      pauses[i]!.end();
      await settled();
    }
    await commits[6]!.answer(done(commits[6]!));
    expect(await result).toBe(0);
    expect(pauses.map(({ ms }) => ms)).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(faults).toEqual(['full', 'full', 'full', 'full', 'full', 'full', undefined]);
    expect(commits.map(({ operations }) => operations)).toEqual(Array(7).fill(commits[0]!.operations));
    expect(commits.some(({ replay }) => replay)).toBe(false);
  });

  it('says that a batch may have been committed, from the loss of its answer on', async () => {
    const { submit, commits, pauses } = rig();
    const result = submit();
    await settled();
    const faults: Reply[] = [
      { fault: 'full', lost: false },
      { fault: 'gone', lost: true },
      { fault: 'full', lost: false },
    ];
    for (const [i, fault] of faults.entries()) {
      await commits[i]!.answer(fault);
      pauses[i]!.end();
      await settled();
    }
    await commits[3]!.answer(done(commits[3]!));
    await result;
    expect(commits.map(({ replay }) => replay)).toEqual([false, false, true, true]);
    const next = submit();
    await settled();
    expect(commits[4]!.replay).toBe(false);
    await commits[4]!.answer(done(commits[4]!));
    await next;
  });

  it('fails an operation alone', async () => {
    const { submit, commits } = rig();
    const results = Promise.allSettled([submit(), submit()]);
    await settled();
    await commits[0]!.answer({ outcomes: [{ error: 'bad' }, { value: true }] });
    expect(await results).toMatchObject([{ reason: { message: 'bad' } }, { value: true }]);
  });

  it('probes with an empty batch', async () => {
    const { queue, commits, faults } = rig();
    queue.probe();
    await settled();
    expect(commits.map(({ operations }) => operations)).toEqual([[]]);
    await commits[0]!.answer({ outcomes: [] });
    expect(faults).toEqual([undefined]);
    expect(commits).toHaveLength(1);
  });

  it('drains: one last try out of a pause, then it gives up, and takes nothing more', async () => {
    const { queue, submit, commits } = rig();
    const results = Promise.allSettled([submit(), submit()]);
    await settled();
    await commits[0]!.answer({ fault: 'full', lost: false });
    const late = submit();
    const drained = queue.drain();
    await settled();
    expect(commits).toHaveLength(2);
    await Promise.all([
      expect(late).rejects.toThrow('closed'),
      commits[1]!.answer({ fault: 'full', lost: false }),
    ]);
    await drained;
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(submit()).rejects.toThrow('closed');
    expect(commits).toHaveLength(2);
  });
});
