/**
 * What many spans have in common is written once and kept: what follows from a method and a host, from a status,
 * from an app. Callers have a say in some of it, so its amount is bounded.
 */
import { ProtobufWriter } from './protobuf.ts';

type Key = string | number | undefined;

/** The bytes that two values make. */
export type Shared<A extends Key, B extends Key> = (a: A, b: B) => Uint8Array;

const KEPT = 1_000;
const LONGEST_KEY = 512;
const FIRST_BYTES = 1_024;

export function bytesOf(write: (writer: ProtobufWriter) => void): Uint8Array {
  const writer = new ProtobufWriter(FIRST_BYTES);
  write(writer);
  return Uint8Array.from(writer.written());
}

/** By one value after the other, since to make one name of the two takes longer than both look-ups. */
export function createShared<A extends Key, B extends Key>(
  write: (writer: ProtobufWriter, a: A, b: B) => void,
): Shared<A, B> {
  const kept = new Map<A, Map<B, Uint8Array>>();
  let count = 0;

  function keep(a: A, b: B, bytes: Uint8Array): void {
    if (count >= KEPT) {
      kept.clear();
      count = 0;
    }
    count += 1;
    const ofA = kept.get(a) ?? new Map<B, Uint8Array>();
    kept.set(a, ofA.set(b, bytes));
  }

  return (a, b) => {
    const known = kept.get(a)?.get(b);
    if (known !== undefined) return known;
    const bytes = bytesOf(writer => write(writer, a, b));
    if (!isLong(a) && !isLong(b)) keep(a, b, bytes);
    return bytes;
  };
}

function isLong(key: Key): boolean {
  return typeof key === 'string' && key.length > LONGEST_KEY;
}
