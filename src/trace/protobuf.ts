/**
 * Writes protobuf in one pass. The length of a message comes before it and is known after it: so lengths have a
 * fixed width, which a varint may have (its last bytes say only that there is nothing more).
 *
 * What is written is short: a loop here is faster than a call of what Buffer has for it.
 */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Of a length: enough for 2 MiB. */
const LENGTH_BYTES = 3;
/** More than a number with its key takes, or an id. */
const SPARE = 32;
const BYTES_OF_A_CHARACTER = 3;
const SHORT = 64;
const FIRST_BEYOND_ASCII = 0x80;
const TWO_TO_32 = 2 ** 32;

export class ProtobufWriter {
  #bytes: Buffer<ArrayBuffer>;
  #at = 0;

  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  /** What was written; the next is written elsewhere. */
  take(): Buffer<ArrayBuffer> {
    const bytes = this.#bytes.subarray(0, this.#at);
    this.#bytes = Buffer.allocUnsafeSlow(this.#bytes.length);
    this.#at = 0;
    return bytes;
  }

  /** Begins a message; what is returned is for `end`. */
  begin(field: number): number {
    this.#makeRoom(SPARE);
    this.#key(field, BYTES);
    this.#at += LENGTH_BYTES;
    return this.#at;
  }

  end(start: number): void {
    const length = this.#at - start;
    this.#bytes[start - 3] = (length & 0x7f) | 0x80;
    this.#bytes[start - 2] = ((length >> 7) & 0x7f) | 0x80;
    this.#bytes[start - 1] = length >> 14;
  }

  text(field: number, text: string): void {
    this.#makeRoom(SPARE + text.length * BYTES_OF_A_CHARACTER);
    const start = this.begin(field);
    if (text.length > SHORT || !this.#ascii(text)) this.#at = start + this.#bytes.write(text, start);
    this.end(start);
  }

  /** An id of fewer than 128 bytes. */
  hex(field: number, digits: string): void {
    this.#makeRoom(SPARE + digits.length);
    this.#key(field, BYTES);
    this.#bytes[this.#at++] = digits.length / 2;
    for (let i = 0; i < digits.length; i += 2) {
      this.#bytes[this.#at++] = (digit(digits.charCodeAt(i)) << 4) | digit(digits.charCodeAt(i + 1));
    }
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

  /** False: it is something else, and has to be written anew. */
  #ascii(text: string): boolean {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code >= FIRST_BEYOND_ASCII) return false;
      this.#bytes[this.#at++] = code;
    }
    return true;
  }

  #key(field: number, kind: number): void {
    this.#varint((field << 3) | kind);
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

const CODE_OF_9 = 0x39;
const CODE_OF_0 = 0x30;
const CODE_OF_A = 0x61;

function digit(code: number): number {
  return code <= CODE_OF_9 ? code - CODE_OF_0 : code - CODE_OF_A + 10;
}
