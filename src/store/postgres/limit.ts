/** Lets only so many things happen at once; the others wait, in the order in which they came. */

export type Limit = <T>(work: () => Promise<T>) => Promise<T>;

export function createLimit(most: number): Limit {
  const waiting: Array<() => void> = [];
  let inside = 0;
  return async work => {
    if (inside < most) inside += 1;
    else await new Promise<void>(resolve => void waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift(); // it takes this place
      if (next === undefined) inside -= 1;
      else next();
    }
  };
}
