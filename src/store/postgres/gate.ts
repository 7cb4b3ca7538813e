/** Lets operations in while the store is open, and knows when the last of them is done. */

export interface Gate {
  readonly isOpen: boolean;
  open(): void;
  run<T>(operation: () => Promise<T>): Promise<T>;
  /** Lets no more in; resolves when all that are in have come out. */
  close(): Promise<void>;
}

export function createGate(): Gate {
  const empty = Promise.withResolvers<void>();
  let isOpen = false;
  let inside = 0;
  return {
    get isOpen() {
      return isOpen;
    },
    open() {
      isOpen = true;
    },
    async run(operation) {
      if (!isOpen) throw new Error('the store is not open');
      inside += 1;
      try {
        return await operation();
      } finally {
        inside -= 1;
        if (inside === 0 && !isOpen) empty.resolve();
      }
    },
    async close() {
      isOpen = false;
      if (inside > 0) await empty.promise;
    },
  };
}
