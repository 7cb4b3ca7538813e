/**
 * Makes run ids: UUIDv7, in the order in which they are made. Random numbers are drawn many at a time, since
 * asking the system for a few costs more than all the rest of an id.
 */
import { randomFillSync } from 'node:crypto';
import { V7Generator } from 'uuidv7';

const DRAWN_AT_ONCE = 1024;

export function createRunIds(): () => string {
  const drawn = new Uint32Array(DRAWN_AT_ONCE);
  let next = DRAWN_AT_ONCE;
  const generator = new V7Generator({
    nextUint32() {
      if (next === DRAWN_AT_ONCE) {
        randomFillSync(drawn);
        next = 0;
      }
      return drawn[next++]!;
    },
  });
  return () => generator.generate().toString();
}
