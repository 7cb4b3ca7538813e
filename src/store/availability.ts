/**
 * Whether the store can be written to: it can while there is no reason why not. Each change is logged once.
 */
import type { Logger } from '../log.ts';

/** `Obstacle`: the reasons that a store may have. */
export interface Availability<Obstacle extends string> {
  readonly ok: boolean;
  /** A `detail` says that the obstacle is there, undefined that it is not. */
  set(obstacle: Obstacle, detail: string | undefined): void;
}

/** `onChange` is told each change as well. */
export function createAvailability<Obstacle extends string>(
  log: Logger,
  onChange = (_available: boolean) => {},
): Availability<Obstacle> {
  const obstacles = new Set<Obstacle>();
  return {
    get ok() {
      return obstacles.size === 0;
    },
    set(obstacle, detail) {
      const before = obstacles.size === 0;
      if (detail === undefined) obstacles.delete(obstacle);
      else obstacles.add(obstacle);
      const after = obstacles.size === 0;
      if (before && !after) log.error({ event: 'store_unavailable', obstacle, detail }, 'store unavailable');
      if (!before && after) log.info({ event: 'store_available' }, 'store available again');
      if (before !== after) onChange(after);
    },
  };
}
