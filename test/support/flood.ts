/**
 * Writes much, as fast as it is taken, and tells how far it is.
 */
import { once } from 'node:events';
import type { Writable } from 'node:stream';

const PIECE = Buffer.alloc(64 * 1024, 'x');

export interface Flood {
  readonly sent: () => number;
  readonly done: Promise<void>;
}

/** `size` in bytes, a multiple of 64 KiB. */
export function flood(to: Writable, size: number): Flood {
  let sent = 0;
  const write = async (): Promise<void> => {
    while (sent < size) {
      const room = to.write(PIECE);
      sent += PIECE.length;
      if (!room) await once(to, 'drain');
    }
  };
  return { sent: () => sent, done: write() };
}
