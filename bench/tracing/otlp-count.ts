/**
 * How many spans a request to a collector holds, with everything else passed over: a collector that shares the
 * machine with what is measured should do as little as it can.
 */

/** `resource_spans` of the request, `scope_spans` of each, `spans` of each. */
const PATH_TO_SPANS = [1, 2, 2];
const LENGTH_DELIMITED = 2;

export function spansIn(request: Buffer): number {
  return countAt(request, 0, request.length, 0);
}

function countAt(bytes: Buffer, start: number, end: number, depth: number): number {
  if (depth === PATH_TO_SPANS.length) return 1;
  let count = 0;
  for (let at = start; at < end; ) {
    const key = bytes[at++]!;
    // Nothing above a span is a number, and no field there is above 15.
    if ((key & 7) !== LENGTH_DELIMITED || key > 0x7f) throw new Error(`a request has the key ${key}`);
    let length = 0;
    for (let shift = 0, byte = 0x80; byte > 0x7f; shift += 7) {
      byte = bytes[at++]!;
      length += (byte & 0x7f) * 2 ** shift;
    }
    if (key >> 3 === PATH_TO_SPANS[depth]) count += countAt(bytes, at, at + length, depth + 1);
    at += length;
  }
  return count;
}
