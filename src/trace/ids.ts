/**
 * Makes the ids of traces and spans. Random bytes are drawn many at a time, since asking the system for a few
 * costs more than all the rest of a span.
 */
import { randomFillSync } from 'node:crypto';

const DRAWN_AT_ONCE = 4_096;
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;

export interface Ids {
  traceId(): string;
  spanId(): string;
}

export function createIds(): Ids {
  const drawn = Buffer.allocUnsafeSlow(DRAWN_AT_ONCE);
  let next = DRAWN_AT_ONCE;
  const draw = (length: number): string => {
    if (next + length > DRAWN_AT_ONCE) {
      randomFillSync(drawn);
      next = 0;
    }
    // Nothing but zeros would be none; a one in its first place costs a bit of 64.
    drawn[next]! |= 0x80;
    next += length;
    return drawn.toString('hex', next - length, next);
  };
  return { traceId: () => draw(TRACE_BYTES), spanId: () => draw(SPAN_BYTES) };
}
