/**
 * How an answer becomes the `result` of an envelope: JSON as it came once it is known to be valid, text as
 * a JSON string, other bytes as base64, and the events of a cortex stream as an array of their values.
 * Encoders take the answer in pieces, so that memory never holds more than a piece of a long one.
 */
import { isUtf8 } from 'node:buffer';
import { EventStreamReader } from './event-stream.ts';
import { JsonScanner } from './json-scanner.ts';

export type ResultKind = 'json' | 'text' | 'bytes' | 'events';

export interface AnswerError {
  readonly type: string;
  readonly message: string;
}

export interface ResultEncoder {
  /** What stands in the envelope for this piece; undefined once the answer is not of this kind after all. */
  push(chunk: Uint8Array): Uint8Array | undefined;
  /** What is left to write at the end; undefined when the answer, now whole, is not of this kind. */
  end(): Uint8Array | undefined;
  /** An error that the answer itself reports in place of a result. */
  readonly error?: AnswerError | undefined;
}

/** The kinds that an answer may turn out to be, the likeliest first; `bytes` always fits. */
export function possibleKinds(contentType: string | undefined): readonly ResultKind[] {
  if (contentType === undefined || isJsonType(contentType)) return ['json', 'text', 'bytes'];
  return isTextType(contentType) ? ['text', 'bytes'] : ['bytes'];
}

export function createEncoder(kind: ResultKind, contentType: string | undefined): ResultEncoder {
  switch (kind) {
    case 'json':
      return new JsonEncoder();
    case 'text':
      return createTextEncoder(contentType);
    case 'bytes':
      return new Base64Encoder();
    case 'events':
      return new EventsEncoder();
  }
}

export interface EncodedResult {
  readonly kind: ResultKind;
  readonly pieces: readonly Uint8Array[];
  readonly error?: AnswerError | undefined;
}

/** Encodes an answer that is in memory as the first of `kinds` that fits it. */
export function encodeResult(
  bytes: Uint8Array,
  kinds: readonly ResultKind[],
  contentType: string | undefined,
): EncodedResult {
  for (const kind of kinds) {
    const encoder = createEncoder(kind, contentType);
    const body = encoder.push(bytes);
    const end = body && encoder.end();
    if (end !== undefined) return { kind, pieces: [body!, end], error: encoder.error };
  }
  throw new Error('an answer fits no kind');
}

const NOTHING = new Uint8Array(0);

class JsonEncoder implements ResultEncoder {
  readonly #scanner = new JsonScanner();

  push(chunk: Uint8Array): Uint8Array | undefined {
    this.#scanner.push(chunk);
    return this.#scanner.invalid ? undefined : chunk;
  }

  end(): Uint8Array | undefined {
    return this.#scanner.complete ? NOTHING : undefined;
  }
}

/** Text in the declared charset; UTF-8 where none is declared. */
function createTextEncoder(contentType: string | undefined): ResultEncoder {
  const charset = charsetOf(contentType) ?? 'utf-8';
  try {
    return new TextResultEncoder(new TextDecoder(charset, { fatal: true, ignoreBOM: true }));
  } catch {
    return { push: () => undefined, end: () => undefined }; // a charset that nobody here knows
  }
}

class TextResultEncoder implements ResultEncoder {
  readonly #decoder: TextDecoder;

  constructor(decoder: TextDecoder) {
    this.#decoder = decoder;
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    return this.#decode(chunk, true);
  }

  end(): Uint8Array | undefined {
    return this.#decode(NOTHING, false);
  }

  #decode(chunk: Uint8Array, stream: boolean): Uint8Array | undefined {
    try {
      return Buffer.from(JSON.stringify(this.#decoder.decode(chunk, { stream })).slice(1, -1));
    } catch {
      return undefined; // not text in this charset
    }
  }
}

class Base64Encoder implements ResultEncoder {
  /** Bytes that do not fill a group of three yet. */
  #rest = Buffer.alloc(0);

  push(chunk: Uint8Array): Uint8Array {
    const bytes =
      this.#rest.length === 0
        ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
        : Buffer.concat([this.#rest, chunk]);
    const whole = bytes.length - (bytes.length % 3);
    this.#rest = Buffer.from(bytes.subarray(whole));
    return Buffer.from(bytes.toString('base64', 0, whole), 'latin1');
  }

  end(): Uint8Array {
    return Buffer.from(this.#rest.toString('base64'), 'latin1');
  }
}

class EventsEncoder implements ResultEncoder {
  readonly #reader = new EventStreamReader();
  #started = false;
  error: AnswerError | undefined;

  push(chunk: Uint8Array): Uint8Array {
    return this.#write(this.#reader.push(chunk));
  }

  end(): Uint8Array {
    const rest = this.#write(this.#reader.end());
    return Buffer.concat([rest, Buffer.from(this.#started ? ']' : '[]')]);
  }

  #write(events: ReturnType<EventStreamReader['push']>): Buffer {
    let text = '';
    for (const { name, data } of events) {
      if (name === 'error') {
        this.error ??= errorOf(data) ?? { type: 'Error', message: data };
        continue;
      }
      text += `${this.#started ? ',' : '['}${isJson(Buffer.from(data)) ? data : JSON.stringify(data)}`;
      this.#started = true;
    }
    return Buffer.from(text);
  }
}

/** `{"type":…,"message":…}`, where that is what the text says. */
export function errorOf(text: string): AnswerError | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    const { type, message } = value as Record<string, unknown>;
    return typeof type === 'string' && typeof message === 'string' ? { type, message } : undefined;
  } catch {
    return undefined;
  }
}

function isJson(bytes: Uint8Array): boolean {
  if (!isUtf8(bytes)) return false;
  const scanner = new JsonScanner();
  scanner.push(bytes);
  return scanner.complete;
}

function mediaType(contentType: string): string {
  const end = contentType.indexOf(';');
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}

export function isJsonType(contentType: string): boolean {
  const type = mediaType(contentType);
  return type === 'application/json' || type === 'text/json' || type.endsWith('+json');
}

export function isEventStream(contentType: string | undefined): boolean {
  return contentType !== undefined && mediaType(contentType) === 'text/event-stream';
}

const TEXT_TYPES: ReadonlySet<string> = new Set([
  'application/ecmascript',
  'application/graphql',
  'application/javascript',
  'application/json-seq',
  'application/jsonl',
  'application/sql',
  'application/toml',
  'application/x-ndjson',
  'application/x-www-form-urlencoded',
  'application/xml',
  'application/yaml',
]);

function isTextType(contentType: string): boolean {
  const type = mediaType(contentType);
  return type.startsWith('text/') || type.endsWith('+xml') || type.endsWith('+yaml') || TEXT_TYPES.has(type);
}

function charsetOf(contentType: string | undefined): string | undefined {
  const match = contentType === undefined ? null : /;\s*charset="?([^\s;"]+)/i.exec(contentType);
  return match?.[1];
}
