/**
 * Attributes that are the same for many spans are written once and kept: those of a method and a host, of an app
 * and a status. Callers have a say in some of them, so their number is bounded.
 */
import { type Attributes, attributeBytes } from './otlp.ts';

const KEPT = 1_000;
const LONGEST_NAME = 512;

/** The attributes of a name, made where they are not there. The name stands for all that they depend on. */
export type SharedAttributes = (name: string, attributes: () => Attributes) => Uint8Array;

export function createSharedAttributes(): SharedAttributes {
  const kept = new Map<string, Uint8Array>();
  return (name, attributes) => {
    let bytes = kept.get(name);
    if (bytes === undefined) {
      bytes = attributeBytes(attributes());
      if (kept.size >= KEPT) kept.clear();
      if (name.length <= LONGEST_NAME) kept.set(name, bytes);
    }
    return bytes;
  };
}
