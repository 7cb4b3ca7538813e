/**
 * Group commit: what is submitted while a batch is being committed makes up the next one, with no wait
 * added. A batch that meets a fault of the environment is kept and tried again until it succeeds, or until
 * the store closes, when it gets one last try.
 */
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import type { Engine } from './engine.ts';
import {
  type Args,
  type Blobs,
  type Kind,
  type Operation,
  type Outcome,
  type Result,
  sizeOf,
} from './protocol.ts';

const MAX_OPERATIONS = 512;
const MAX_BYTES = 8 * 1024 * 1024;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

interface Entry {
  readonly operation: Operation;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

export interface Queue {
  /** `owner`: the node that wants it, where it is not the one that opened the database. */
  submit<K extends Kind>(kind: K, args: Args<K>, blobs?: Blobs, owner?: number): Promise<Result<K>>;
  /** Makes sure that the database can be written, even when nobody has anything to write. */
  probe(): void;
  /** Takes nothing more, and writes what it has. */
  drain(): Promise<void>;
}

export interface QueueOptions {
  readonly engine: Pick<Engine, 'commit'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told after every try; the fault is undefined when it succeeded. */
  readonly onTry: (fault: string | undefined) => void;
}

export function createQueue({ engine, clock, log, onTry }: QueueOptions): Queue {
  const waiting: Entry[] = [];
  let probing = false;
  let draining = false;
  let pumping: Promise<void> | undefined;
  let endPause = () => {};

  /** Undefined: the last try before the end has failed. */
  async function persist(batch: readonly Entry[]): Promise<readonly Outcome[] | undefined> {
    const operations = batch.map(entry => entry.operation);
    let replay = false;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const reply = await engine.commit(operations, replay);
      onTry('fault' in reply ? reply.fault : undefined);
      if ('outcomes' in reply) return reply.outcomes;
      replay ||= reply.lost;
      if (draining) return undefined;
      await new Promise<void>(resolve => {
        const cancel = clock.after(pause, resolve);
        endPause = () => {
          cancel();
          resolve();
        };
      });
    }
  }

  async function pump(): Promise<void> {
    // Everything that the present turn of the event loop submits shares the first batch.
    await Promise.resolve();
    while (waiting.length > 0 || probing) {
      probing = false;
      const batch = takeBatch(waiting);
      const outcomes = await persist(batch);
      if (outcomes === undefined) {
        giveUp([...batch, ...waiting.splice(0)]);
        break;
      }
      for (const [index, entry] of batch.entries()) settle(entry, outcomes[index]!);
    }
    pumping = undefined;
  }

  function giveUp(entries: readonly Entry[]): void {
    if (entries.length === 0) return;
    const count = (kind: Kind) => entries.filter(({ operation }) => operation.kind === kind).length;
    log.error(
      {
        event: 'store_closed_unwritten',
        operations: entries.length,
        deliveries: count('insert'),
        runs: count('insertRun'),
      },
      'the store closes with operations that could not be written',
    );
    for (const { reject } of entries) reject(new Error('the store closed before this could be written'));
  }

  return {
    submit<K extends Kind>(kind: K, args: Args<K>, blobs: Blobs = [], owner?: number) {
      if (draining) return Promise.reject(new Error('the store is closed'));
      return new Promise<Result<K>>((resolve, reject) => {
        waiting.push({ operation: { kind, args, blobs, owner }, resolve, reject });
        pumping ??= pump();
      });
    },
    probe() {
      if (draining) return;
      probing = true;
      pumping ??= pump();
    },
    async drain() {
      draining = true;
      endPause();
      await pumping;
    },
  };
}

/** The first operation always goes, whatever its size. */
function takeBatch(waiting: Entry[]): Entry[] {
  let count = 0;
  let bytes = 0;
  while (count < waiting.length && count < MAX_OPERATIONS) {
    bytes += sizeOf(waiting[count]!.operation.blobs);
    if (count > 0 && bytes > MAX_BYTES) break;
    count += 1;
  }
  return waiting.splice(0, count);
}

function settle({ resolve, reject }: Entry, outcome: Outcome): void {
  if ('error' in outcome) reject(new Error(outcome.error));
  else resolve(outcome.value as never);
}
