/**
 * Watches the free space of the data directory's file system, so that calls are refused before a write
 * fails and not after.
 */
import { statfs } from 'node:fs/promises';

const EVERY_MS = 1_000;

export interface SpaceWatch {
  start(): Promise<void>;
  stop(): void;
}

export interface SpaceWatchOptions {
  readonly dir: string;
  /** Bytes below which the disk counts as full. */
  readonly minFree: number;
  /** Told at every look; undefined when there is room. */
  readonly onLook: (detail: string | undefined) => void;
}

export function createSpaceWatch({ dir, minFree, onLook }: SpaceWatchOptions): SpaceWatch {
  let timer: NodeJS.Timeout | undefined;

  async function look(): Promise<void> {
    const free = await statfs(dir).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => undefined, // no answer says nothing about the room; writes will tell
    );
    if (free === undefined) return;
    onLook(free < minFree ? `${free} bytes free, ${minFree} needed` : undefined);
  }

  return {
    async start() {
      await look();
      timer = setInterval(() => void look(), EVERY_MS).unref();
    },
    stop() {
      clearInterval(timer);
    },
  };
}
