/**
 * Writes protobuf in one pass. The length of a message comes before it and is known after it: so lengths have a
 * fixed width, which a varint may have (its last bytes say only that there is nothing more).
 */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Of a length: enough for 256 MiB. */
const LENGTH_BYTES = 4;
/** Of the length of a text that is shorter than 128 bytes in any case. */
const SHORT_LENGTH_BYTES = 1;
const LONGEST_SHORT = 42;
/** More than a number with its key takes, or the key of an id or a text with its length. */
const SPARE = 32;
const BYTES_OF_A_CHARACTER = 3;
const TWO_TO_32 = 2 ** 32;

export class ProtobufWriter {
  #bytes: Buffer<ArrayBuffer>;
  #at = 0;

  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  /** Good until something else is written. */
  written(): Buffer<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#at);
  }

  /** Forgets what was written behind the first bytes. */
  cutTo(length: number): void {
    this.#at = length;
  }

  /** Begins a message; what is returned is for `end`. */
  begin(field: number): number {
    this.#makeRoom(SPARE);
    this.#key(field, BYTES);
    this.#at += LENGTH_BYTES;
    return this.#at;
  }

  end(start: number): void {
    this.#length(start, LENGTH_BYTES);
  }

  text(field: number, text: string): void {
    this.#makeRoom(SPARE + text.length * BYTES_OF_A_CHARACTER);
    this.#key(field, BYTES);
    const width = text.length <= LONGEST_SHORT ? SHORT_LENGTH_BYTES : LENGTH_BYTES;
    const start = this.#at + width;
    this.#at = start + (this.#ascii(text, start) ?? this.#bytes.write(text, start));
    this.#length(start, width);
  }

  /** For short texts, a call of `write` takes longer than this. Undefined where it is long, or something else. */
  #ascii(text: string, start: number): number | undefined {
    const { length } = text;
    if (length > LONGEST_SHORT) return undefined;
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return undefined;
      bytes[start + i] = code;
    }
    return length;
  }

  /** An id of fewer than 128 bytes, in lower case; by hand, as short texts are. */
  hex(field: number, digits: string): void {
    this.#makeRoom(SPARE + digits.length);
    this.#key(field, BYTES);
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = digits.length >>> 1;
    for (let i = 0; i < digits.length; i += 2) {
      bytes[at++] = (valueOf(digits.charCodeAt(i)) << 4) | valueOf(digits.charCodeAt(i + 1));
    }
    this.#at = at;
  }

  /** A whole number of at most 31 bits. */
  number(field: number, value: number): void {
    this.#makeRoom(SPARE);
    this.#key(field, VARINT);
    this.#varint(value);
  }

  fixed32(field: number, value: number): void {
    this.#makeRoom(SPARE);
    this.#key(field, FIXED32);
    this.#uint32(value);
  }

  /** Beyond 2 ** 53 as near as a number comes. */
  fixed64(field: number, value: number): void {
    this.#makeRoom(SPARE);
    this.#key(field, FIXED64);
    const high = Math.floor(value / TWO_TO_32);
    this.#uint32(value - high * TWO_TO_32);
    this.#uint32(high);
  }

  /** Fields that were written elsewhere. */
  raw(bytes: Uint8Array): void {
    this.#makeRoom(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #key(field: number, kind: number): void {
    this.#varint((field << 3) | kind);
  }

  /** Of what lies between `start` and here, into the bytes before it. */
  #length(start: number, width: number): void {
    let rest = this.#at - start;
    for (let at = start - width; at < start - 1; at++) {
      this.#bytes[at] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[start - 1] = rest;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#at++] = rest;
  }

  #uint32(value: number): void {
    this.#bytes[this.#at++] = value;
    this.#bytes[this.#at++] = value >>> 8;
    this.#bytes[this.#at++] = value >>> 16;
    this.#bytes[this.#at++] = value >>> 24;
  }

  #makeRoom(size: number): void {
    if (this.#at + size <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + size));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

/** Of a digit: its code in ASCII, less that of `0`, or less that of `a` and ten more. */
function valueOf(code: number): number {
  return code < 0x3a ? code - 0x30 : code - 0x57;
}
