/**
 * Gathers what comes one by one and tells it together: the last word on each thing, a few times a second.
 */

export interface BatchOptions<T> {
  readonly key: (item: T) => string;
  readonly tell: (items: readonly T[]) => void;
}

export interface Batch<T> {
  add(item: T): void;
  /** Forgets what has not been told. */
  drop(): void;
}

const EVERY_MS = 250;
/** A browser hardly runs the timers of a page that nobody sees. */
const MOST = 1_000;

export function createBatch<T>({ key, tell }: BatchOptions<T>): Batch<T> {
  const gathered = new Map<string, T>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function drop(): void {
    clearTimeout(timer);
    timer = undefined;
    gathered.clear();
  }

  function flush(): void {
    const items = [...gathered.values()];
    drop();
    tell(items);
  }

  return {
    add(item) {
      gathered.set(key(item), item);
      if (gathered.size >= MOST) flush();
      else timer ??= setTimeout(flush, EVERY_MS);
    },
    drop,
  };
}
