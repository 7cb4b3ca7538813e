/**
 * Large bodies: files of the spool, which the tables have in parts. They are written a part at a time, before
 * the row that needs them, and read back in the same way.
 */
import { open } from 'node:fs/promises';
import type { Body, NewBody } from '../store.ts';

const PART_BYTES = 1024 * 1024;

export interface Part {
  /** From 0. */
  readonly number: number;
  /** Good until the next part is asked for. */
  readonly bytes: Uint8Array;
}

/** A body as a row has it: its bytes, the size of what is in parts, or neither. */
export interface BodyRow {
  readonly size: number | null;
  readonly body: Uint8Array | null;
}

/** Throws unless the body, where it is a file, is the one of this path. */
export function assertSpooled(body: NewBody, path: string): void {
  if ('file' in body && body.file !== path) throw new Error(`the body is not in the spool: ${body.file}`);
}

/** What goes into the row: its bytes, or the size of what goes into parts. */
export function inRow(body: NewBody): Uint8Array | number {
  return 'file' in body ? body.size : body.bytes;
}

export async function* partsOf(file: string, size: number): AsyncGenerator<Part> {
  await using handle = await open(file);
  const buffer = Buffer.allocUnsafe(Math.min(PART_BYTES, size));
  for (let number = 0, position = 0; position < size; number += 1) {
    const length = Math.min(PART_BYTES, size - position);
    const { bytesRead } = await handle.read(buffer, 0, length, position);
    if (bytesRead < length) throw new RangeError(`${file} is too short`);
    yield { number, bytes: buffer.subarray(0, bytesRead) };
    position += bytesRead;
  }
}

/** Undefined where the row has none. Where parts are missing, the body ends early. */
export function bodyOf(
  { size, body }: BodyRow,
  readPart: (number: number) => Promise<Uint8Array | undefined>,
): Body | undefined {
  async function* pieces(whole: number): AsyncGenerator<Uint8Array> {
    for (let number = 0; number * PART_BYTES < whole; number += 1) {
      const bytes = await readPart(number);
      if (bytes === undefined) return;
      yield bytes;
    }
  }
  if (size !== null) return { size, pieces: () => pieces(size) };
  return body === null ? undefined : { bytes: body };
}
