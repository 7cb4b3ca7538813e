/**
 * Checks JSON (RFC 8259) byte by byte as it arrives, without building values: what is spliced into an
 * envelope must be valid, and must keep its big numbers and key order. On the way it notes what the root
 * is and the integer under the root object's own key `status_code`.
 *
 * It is a pushdown automaton: `state` says what may come next, `stack` holds one byte per open object or
 * array. Strings are checked as UTF-8 (RFC 3629), since a byte sequence that is not cannot be JSON.
 */

export type JsonRoot = 'object' | 'array' | 'scalar';

// What may come next. The order of the groups matters to nothing.
const VALUE = 0; // a value
const FIRST_ITEM = 1; // a value or ]
const FIRST_KEY = 2; // a key or }
const KEY = 3; // a key
const COLON = 4;
const AFTER_VALUE = 5; // , or the closing bracket; at the root only white space
const STRING = 6;
const ESCAPE = 7;
const HEX = 8; // digits left in `count`
const CONTINUATION = 9; // UTF-8 bytes left in `count`, the next within `low`..`high`
const LITERAL = 10; // rest of true, false or null
const MINUS = 11;
const ZERO = 12;
const INTEGER = 13;
const POINT = 14; // a digit must follow
const FRACTION = 15;
const EXPONENT = 16; // sign or digit must follow
const EXPONENT_SIGN = 17; // digit must follow
const EXPONENT_DIGITS = 18;
const INVALID = 19;

const OBJECT = 1;
const ARRAY = 2;

const STATUS_KEY = Buffer.from('status_code');
const LITERALS: Readonly<Record<number, Uint8Array>> = {
  0x74: Buffer.from('true'),
  0x66: Buffer.from('false'),
  0x6e: Buffer.from('null'),
};

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;
const isHex = (byte: number): boolean =>
  isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);

export class JsonScanner {
  #state = VALUE;
  #stack = new Uint8Array(32);
  #depth = 0;
  #started = false;
  #root: JsonRoot | undefined;

  #count = 0;
  #low = 0x80;
  #high = 0xbf;
  #literal: Uint8Array = STATUS_KEY;
  #inKey = false;

  /** How much of STATUS_KEY the root object's current key has matched; -1 once it differs. */
  #keyMatch = -1;
  #expectStatus = false;
  #statusDigits = '';
  #statusCode: number | undefined;

  get invalid(): boolean {
    return this.#state === INVALID;
  }

  /** Known from the first byte that is not white space. */
  get root(): JsonRoot | undefined {
    return this.#root;
  }

  /** The integer 200 to 599 under the root object's `status_code`, once it has been read whole. */
  get statusCode(): number | undefined {
    return this.#statusCode;
  }

  /** True when the root object ends, or could end, with all that was read: a whole, valid JSON text. */
  get complete(): boolean {
    if (this.#depth > 0 || !this.#started) return false;
    const state = this.#state;
    return (
      state === AFTER_VALUE ||
      state === ZERO ||
      state === INTEGER ||
      state === FRACTION ||
      state === EXPONENT_DIGITS
    );
  }

  push(chunk: Uint8Array): void {
    const { length } = chunk;
    let i = 0;
    while (i < length) {
      const state = this.#state;
      if (state === INVALID) return;
      if (state === STRING && this.#keyMatch < 0) {
        i = skipPlain(chunk, i);
        if (i === length) return;
      }
      this.#state = this.#step(state, chunk[i]!);
      i++;
    }
  }

  #step(state: number, byte: number): number {
    if (state === STRING) return this.#inString(byte);
    if (state >= ESCAPE && state <= LITERAL) return this.#inToken(state, byte);
    if (state >= MINUS) return this.#inNumber(state, byte);
    if (isSpace(byte)) return state;
    switch (state) {
      case VALUE:
        return this.#value(byte);
      case FIRST_ITEM:
        return byte === 0x5d ? this.#close(ARRAY) : this.#value(byte);
      case FIRST_KEY:
        return byte === 0x7d ? this.#close(OBJECT) : this.#key(byte);
      case KEY:
        return this.#key(byte);
      case COLON:
        return byte === 0x3a ? VALUE : INVALID;
      default:
        return this.#afterValue(byte);
    }
  }

  #value(byte: number): number {
    this.#started = true;
    if (this.#root === undefined) this.#root = byte === 0x7b ? 'object' : byte === 0x5b ? 'array' : 'scalar';
    const expectStatus = this.#expectStatus;
    this.#expectStatus = false;
    if (byte === 0x22) {
      this.#inKey = false;
      return STRING;
    }
    if (byte === 0x7b) return this.#open(OBJECT, FIRST_KEY);
    if (byte === 0x5b) return this.#open(ARRAY, FIRST_ITEM);
    if (byte === 0x2d) return MINUS;
    if (isDigit(byte)) {
      this.#statusDigits = expectStatus ? String.fromCharCode(byte) : '';
      return byte === 0x30 ? ZERO : INTEGER;
    }
    const literal = LITERALS[byte];
    if (literal === undefined) return INVALID;
    this.#literal = literal;
    this.#count = 1;
    return LITERAL;
  }

  #key(byte: number): number {
    if (byte !== 0x22) return INVALID;
    this.#inKey = true;
    this.#keyMatch = this.#depth === 1 ? 0 : -1;
    return STRING;
  }

  #open(kind: number, next: number): number {
    if (this.#depth === this.#stack.length) {
      const larger = new Uint8Array(this.#stack.length * 2);
      larger.set(this.#stack);
      this.#stack = larger;
    }
    this.#stack[this.#depth++] = kind;
    return next;
  }

  #close(kind: number): number {
    if (this.#depth === 0 || this.#stack[this.#depth - 1] !== kind) return INVALID;
    this.#depth--;
    return AFTER_VALUE;
  }

  #afterValue(byte: number): number {
    if (byte === 0x2c && this.#depth > 0) return this.#stack[this.#depth - 1] === OBJECT ? KEY : VALUE;
    if (byte === 0x7d) return this.#close(OBJECT);
    if (byte === 0x5d) return this.#close(ARRAY);
    return INVALID;
  }

  #inString(byte: number): number {
    if (byte === 0x22) return this.#endString();
    if (byte < 0x20) return INVALID;
    if (byte === 0x5c) {
      this.#keyMatch = -1;
      return ESCAPE;
    }
    if (byte < 0x80) {
      if (this.#keyMatch >= 0) this.#keyMatch = STATUS_KEY[this.#keyMatch] === byte ? this.#keyMatch + 1 : -1;
      return STRING;
    }
    this.#keyMatch = -1;
    return this.#leadByte(byte);
  }

  #endString(): number {
    if (!this.#inKey) return AFTER_VALUE;
    this.#expectStatus = this.#keyMatch === STATUS_KEY.length;
    this.#keyMatch = -1;
    return COLON;
  }

  /** RFC 3629, section 4: no overlong forms, no surrogates, nothing above U+10FFFF. */
  #leadByte(byte: number): number {
    this.#low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
    this.#high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
    if (byte >= 0xc2 && byte <= 0xdf) this.#count = 1;
    else if (byte >= 0xe0 && byte <= 0xef) this.#count = 2;
    else if (byte >= 0xf0 && byte <= 0xf4) this.#count = 3;
    else return INVALID;
    return CONTINUATION;
  }

  #inToken(state: number, byte: number): number {
    if (state === CONTINUATION) {
      if (byte < this.#low || byte > this.#high) return INVALID;
      this.#low = 0x80;
      this.#high = 0xbf;
      return --this.#count === 0 ? STRING : CONTINUATION;
    }
    if (state === LITERAL) {
      if (this.#literal[this.#count] !== byte) return INVALID;
      return ++this.#count === this.#literal.length ? AFTER_VALUE : LITERAL;
    }
    if (state === HEX) {
      if (!isHex(byte)) return INVALID;
      return --this.#count === 0 ? STRING : HEX;
    }
    if (byte === 0x75) {
      this.#count = 4;
      return HEX;
    }
    // " \ / b f n r t
    const simple = byte === 0x22 || byte === 0x5c || byte === 0x2f || byte === 0x62 || byte === 0x66;
    return simple || byte === 0x6e || byte === 0x72 || byte === 0x74 ? STRING : INVALID;
  }

  #inNumber(state: number, byte: number): number {
    if (isDigit(byte)) {
      if (state === MINUS) return byte === 0x30 ? ZERO : INTEGER;
      if (state === INTEGER) {
        if (this.#statusDigits !== '' && this.#statusDigits.length < 4) {
          this.#statusDigits += String.fromCharCode(byte);
        }
        return INTEGER;
      }
      if (state === ZERO) return INVALID;
      return state === POINT || state === FRACTION ? FRACTION : EXPONENT_DIGITS;
    }
    const whole = state === ZERO || state === INTEGER;
    if (byte === 0x2e && whole) return this.#notInteger(POINT);
    if ((byte === 0x65 || byte === 0x45) && (whole || state === FRACTION)) return this.#notInteger(EXPONENT);
    if ((byte === 0x2b || byte === 0x2d) && state === EXPONENT) return EXPONENT_SIGN;
    if (!whole && state !== FRACTION && state !== EXPONENT_DIGITS) return INVALID;
    this.#endNumber();
    return isSpace(byte) ? AFTER_VALUE : this.#afterValue(byte);
  }

  #notInteger(next: number): number {
    this.#statusDigits = '';
    return next;
  }

  #endNumber(): void {
    if (this.#statusDigits.length === 3 && this.#depth === 1) {
      const value = Number(this.#statusDigits);
      if (value >= 200 && value <= 599) this.#statusCode = value;
    }
    this.#statusDigits = '';
  }
}

/** The first place at or after `i` that a string cannot simply run over. */
function skipPlain(chunk: Uint8Array, start: number): number {
  let i = start;
  while (i < chunk.length) {
    const byte = chunk[i]!;
    if (byte === 0x22 || byte === 0x5c || byte < 0x20 || byte >= 0x80) return i;
    i++;
  }
  return i;
}
