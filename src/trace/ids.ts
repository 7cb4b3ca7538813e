/**
 * Makes the ids of traces and spans. Random bytes are drawn, and put into digits, many at a time: for one id
 * alone either costs more than all the rest of a span.
 */
import { randomFillSync } from 'node:crypto';

const DRAWN_AT_ONCE = 4_096;
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
const DIGITS_OF_A_BYTE = 2;

export interface Ids {
  traceId(): string;
  spanId(): string;
}

export function createIds(): Ids {
  const drawn = Buffer.allocUnsafeSlow(DRAWN_AT_ONCE);
  let digits = '';
  let next = 0;
  const draw = (bytes: number): string => {
    const length = bytes * DIGITS_OF_A_BYTE;
    if (next + length > digits.length) {
      digits = drawDigits(drawn);
      next = 0;
    }
    next += length;
    return digits.slice(next - length, next);
  };
  return { traceId: () => draw(TRACE_BYTES), spanId: () => draw(SPAN_BYTES) };
}

/** Nothing but zeros would be no id; a one in the first place of each costs a bit of 64. */
function drawDigits(into: Buffer): string {
  randomFillSync(into);
  for (let at = 0; at < into.length; at += SPAN_BYTES) into[at]! |= 0x80;
  return into.toString('hex');
}
