/**
 * How many deliveries of each project are pending, in memory, in the store, or on the way there. They are
 * counted as they come and go; where other nodes use the same store, theirs are read from it now and then.
 *
 * A change that was given to the store before a reading began is part of what is read, one given to it later
 * comes on top, and the answer to either may come at any time. So each change has a mark: how many readings
 * had begun when it was given to the store.
 */
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { Store } from '../store/store.ts';
import { add } from './room.ts';

const REFRESH_MS = 10_000;

export interface PendingOptions {
  readonly store: Pick<Store, 'backlog'>;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Pending {
  readonly #options: PendingOptions;
  #counts = new Map<string, number>();
  /** Changes that come on top of the reading under way. */
  #onTop: Map<string, number> | undefined;
  /** Readings begun, and of these the one that the counts rest on. */
  #begun = 0;
  #base = 0;
  #stopped = false;
  #cancel = () => {};

  constructor(options: PendingOptions) {
    this.#options = options;
  }

  /** To be taken before a change is given to the store. */
  get mark(): number {
    return this.#begun;
  }

  of(projectId: string): number {
    return Math.max(0, this.#counts.get(projectId) ?? 0);
  }

  change(projectId: string, by: 1 | -1, mark: number): void {
    if (mark >= this.#base) add(this.#counts, projectId, by);
    if (this.#onTop !== undefined && mark === this.#begun) add(this.#onTop, projectId, by);
  }

  /** Reads them anew. One at a time. */
  async read(): Promise<void> {
    this.#begun += 1;
    const onTop = new Map<string, number>();
    this.#onTop = onTop;
    try {
      const counts = new Map((await this.#options.store.backlog()).pending);
      for (const [projectId, by] of onTop) add(counts, projectId, by);
      this.#counts = counts;
      this.#base = this.#begun;
    } finally {
      this.#onTop = undefined;
    }
  }

  /** From now on reads them anew every 10 s, until `stop`. */
  keepFresh(): void {
    const { clock, log } = this.#options;
    if (this.#stopped) return;
    this.#cancel = clock.after(REFRESH_MS, () => {
      this.read()
        .catch((error: unknown) => log.warn({ err: error }, 'the number of pending deliveries was not read'))
        .finally(() => this.keepFresh());
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }
}
