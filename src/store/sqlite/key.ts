/**
 * Run ids and the integer keys made of them: the millisecond of the UUIDv7 and a sequence number, within
 * the 53 bits that a JavaScript number holds. A run is found by the range of its millisecond, so the run id
 * itself needs no index.
 */
import { isRunId } from '../run-id.ts';

const EPOCH = Date.UTC(2024, 0, 1);
const LAST_MS = 2 ** 40 - 1;

/** How many keys one millisecond has. */
export const KEYS_PER_MS = 8192;

export interface RunKey {
  /** The run id in 16 bytes. */
  readonly bytes: Uint8Array;
  /** The first and the last key of the run's millisecond. */
  readonly first: number;
  readonly last: number;
}

/** Undefined when it is no UUIDv7 in lower case, or lies outside 2024 to 2058. */
export function parseRunId(runId: string): RunKey | undefined {
  if (!isRunId(runId)) return undefined;
  const bytes = Buffer.from(runId.replaceAll('-', ''), 'hex');
  const ms = bytes.readUIntBE(0, 6) - EPOCH;
  if (ms < 0 || ms > LAST_MS) return undefined;
  const first = ms * KEYS_PER_MS;
  return { bytes, first, last: first + KEYS_PER_MS - 1 };
}

/** The first key of a millisecond: those of runs that came before it are smaller. */
export function firstKeyAt(ms: number): number {
  return (Math.ceil(ms) - EPOCH) * KEYS_PER_MS;
}

export function formatRunId(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
