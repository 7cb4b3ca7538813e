/**
 * JSON as text: finds a member of an object, and lays a value out in lines, without ever reading it into values.
 * A number that JavaScript would round, a key that comes twice and every escape stay as they were written.
 */

export type PieceKind = 'plain' | 'key' | 'string' | 'number' | 'literal';

/** Text of one kind; what stands between values (brackets, commas, line breaks) is plain. */
export interface Piece {
  readonly kind: PieceKind;
  readonly text: string;
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
const SCALAR_END = /[,\]} \t\n\r]|$/g;
const BRACKET_OR_QUOTE = /["{}[\]]/g;

const INDENT = '  ';
/** Deeper values stand no further to the right: a page of nothing but brackets would be a page of spaces. */
const DEEPEST = 24;

/** Where the member is that `keys` lead to, one in the other; undefined where there is none. */
export function memberSpan(text: string, keys: readonly string[]): Span | undefined {
  let span: Span | undefined = { start: past(SPACE, text, 0), end: text.length };
  for (const key of keys) {
    span = span && ownMember(text, span.start, key);
  }
  return span;
}

function ownMember(text: string, object: number, key: string): Span | undefined {
  if (text[object] !== '{') return undefined;
  let at = past(SPACE, text, object + 1);
  while (text[at] === '"') {
    const keyEnd = endOfString(text, at);
    const start = past(SPACE, text, past(SPACE, text, keyEnd) + 1);
    const end = endOfValue(text, start);
    if (JSON.parse(text.slice(at, keyEnd)) === key) return { start, end };
    at = past(SPACE, text, past(SPACE, text, end) + 1);
  }
  return undefined;
}

/**
 * The value in lines, or undefined where the text is not JSON. A text that is cut off somewhere is laid out as
 * far as it goes. `coloured` bounds how many pieces are told apart; what comes behind is plain.
 */
export function layOut(text: string, coloured = Number.POSITIVE_INFINITY): Piece[] | undefined {
  const layout = new Layout(coloured);
  let at = past(SPACE, text, 0);
  while (at < text.length) {
    const end = endOfToken(text, at);
    if (end === undefined || !layout.take(text.slice(at, end))) return undefined;
    at = past(SPACE, text, end);
  }
  return layout.end();
}

const CLOSING: Readonly<Record<string, string>> = { '{': '}', '[': ']' };
const SIGNS = '{}[],:';

/** Takes one token after the other. */
class Layout {
  readonly #pieces: Piece[] = [];
  readonly #open: string[] = [];
  #coloured: number;
  #plain = '';
  /** The sign that came last, `value` for any scalar. */
  #last = '';

  constructor(coloured: number) {
    this.#coloured = coloured;
  }

  /** False where it cannot stand here; values side by side would run into each other. */
  take(token: string): boolean {
    const sign = SIGNS.includes(token) ? token : 'value';
    const follows = isEnd(this.#last);
    const closes = isEnd(sign) && sign !== 'value';
    if (closes ? CLOSING[this.#open.pop() ?? ''] !== sign : follows !== (sign === ',' || sign === ':'))
      return false;
    this.#plain += this.#gapBefore(closes);
    if (sign === 'value') this.#add(this.#kindOf(token), token);
    else this.#plain += sign;
    if (sign in CLOSING) this.#open.push(sign);
    this.#last = sign;
    return true;
  }

  end(): Piece[] {
    this.#settle();
    return this.#pieces;
  }

  #gapBefore(closes: boolean): string {
    if (this.#last === ':') return ' ';
    const opened = this.#last in CLOSING;
    if (closes === opened && this.#last !== ',') return '';
    return `\n${INDENT.repeat(Math.min(this.#open.length, DEEPEST))}`;
  }

  #kindOf(scalar: string): PieceKind {
    if (scalar[0] === '"') return this.#open.at(-1) === '{' && this.#last !== ':' ? 'key' : 'string';
    return /^[-\d]/.test(scalar) ? 'number' : 'literal';
  }

  #add(kind: PieceKind, text: string): void {
    if (this.#coloured <= 0) {
      this.#plain += text;
      return;
    }
    this.#coloured -= 1;
    this.#settle();
    this.#pieces.push({ kind, text });
  }

  #settle(): void {
    if (this.#plain !== '') this.#pieces.push({ kind: 'plain', text: this.#plain });
    this.#plain = '';
  }
}

/** Whether a value ends with it. */
function isEnd(sign: string): boolean {
  return sign === 'value' || sign === '}' || sign === ']';
}

/** One that the end of the text cuts off ends there. */
function endOfToken(text: string, at: number): number | undefined {
  if (SIGNS.includes(text[at]!)) return at + 1;
  if (text[at] === '"') return endOfString(text, at);
  for (const form of [NUMBER, LITERAL]) {
    const end = past(form, text, at);
    if (end > at && isScalarEnd(text, end)) return end;
  }
  return isCutOff(text.slice(at)) ? text.length : undefined;
}

function isScalarEnd(text: string, at: number): boolean {
  return at === text.length || ',:]} \t\n\r'.includes(text[at]!);
}

function isCutOff(rest: string): boolean {
  return ['true', 'false', 'null'].some(each => each.startsWith(rest)) || /^-?[\d.eE+-]*$/.test(rest);
}

function endOfValue(text: string, at: number): number {
  if (text[at] === '"') return endOfString(text, at);
  if (text[at] !== '{' && text[at] !== '[') {
    SCALAR_END.lastIndex = at;
    return SCALAR_END.exec(text)!.index;
  }
  let depth = 0;
  BRACKET_OR_QUOTE.lastIndex = at;
  for (let found = BRACKET_OR_QUOTE.exec(text); found !== null; found = BRACKET_OR_QUOTE.exec(text)) {
    if (found[0] === '"') BRACKET_OR_QUOTE.lastIndex = endOfString(text, found.index);
    else depth += found[0] === '{' || found[0] === '[' ? 1 : -1;
    if (depth === 0) return found.index + 1;
  }
  return text.length;
}

/** Behind its closing quote: the first that an even number of backslashes stands before, none included. */
function endOfString(text: string, at: number): number {
  let quote = text.indexOf('"', at + 1);
  while (quote !== -1) {
    let before = quote;
    while (text[before - 1] === '\\') before -= 1;
    if ((quote - before) % 2 === 0) return quote + 1;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}

function past(form: RegExp, text: string, at: number): number {
  form.lastIndex = at;
  return form.test(text) ? form.lastIndex : at;
}
