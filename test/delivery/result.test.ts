import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createEncoder,
  encodeResult,
  errorOf,
  isEventStream,
  isJsonType,
  possibleKinds,
  type ResultKind,
} from '../../src/delivery/result.ts';

describe('the kinds that an answer may be', () => {
  const JSON_FIRST = ['json', 'text', 'bytes'];
  const TEXT_FIRST = ['text', 'bytes'];
  it.each<[string | undefined, string[]]>([
    [undefined, JSON_FIRST],
    ['application/json', JSON_FIRST],
    ['Application/JSON ; charset=utf-8', JSON_FIRST],
    ['application/vnd.api+json', JSON_FIRST],
    ['text/json', JSON_FIRST],
    ['text/html; charset=x', TEXT_FIRST],
    ['text/event-stream', TEXT_FIRST],
    ['application/xml', TEXT_FIRST],
    ['image/svg+xml', TEXT_FIRST],
    ['application/javascript', TEXT_FIRST],
    ['application/x-ndjson', TEXT_FIRST],
    ['application/octet-stream', ['bytes']],
    ['image/png', ['bytes']],
    ['', ['bytes']],
    ['applicationjson', ['bytes']],
  ])('of %j', (type, kinds) => {
    expect(possibleKinds(type)).toEqual(kinds);
  });

  it('know a media type by its name alone', () => {
    expect(['application/json', 'a/b+JSON;x=y', 'application/jsonp'].map(isJsonType)).toEqual([
      true,
      true,
      false,
    ]);
    expect(['text/event-stream;charset=utf-8', 'text/event-streams', undefined].map(isEventStream)).toEqual([
      true,
      false,
      false,
    ]);
  });
});

/** What stands in the envelope: undefined where the answer is not of this kind. */
function encoded(kind: ResultKind, pieces: readonly Uint8Array[], type?: string): string | undefined {
  const encoder = createEncoder(kind, type);
  const out: Uint8Array[] = [];
  for (const piece of pieces) {
    const bytes = encoder.push(piece);
    if (bytes === undefined) return undefined;
    out.push(bytes);
  }
  const end = encoder.end();
  return end && Buffer.concat([...out, end]).toString();
}

function cut(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.filter(at => at < bytes.length).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((place, i) => bytes.subarray(places[i], place));
}

const cuts = fc.array(fc.nat(300), { maxLength: 6 });

describe('an encoder, however the answer is cut into pieces,', () => {
  it('leaves JSON as it came', () => {
    fc.assert(
      fc.property(fc.json(), cuts, (json, at) => {
        expect(encoded('json', cut(Buffer.from(json), at))).toBe(json);
      }),
    );
  });

  it('makes text a JSON string, without its quotes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), cuts, (text, at) => {
        const got = encoded('text', cut(Buffer.from(text), at), 'text/plain');
        expect(JSON.parse(`"${got}"`)).toBe(text);
      }),
    );
  });

  it('makes bytes base64', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, at) => {
        expect(encoded('bytes', cut(bytes, at))).toBe(Buffer.from(bytes).toString('base64'));
      }),
    );
  });

  it('makes events an array of their values, JSON as it came and anything else a string', () => {
    const value = fc.oneof(fc.json(), fc.constantFrom('plain', '{"a":', '01', ''));
    fc.assert(
      fc.property(fc.array(value, { maxLength: 6 }), cuts, (values, at) => {
        const stream = values.map(each => `data: ${each}\n\n`).join('');
        const wanted = values.map(each => {
          try {
            JSON.parse(each);
            return each;
          } catch {
            return JSON.stringify(each);
          }
        });
        expect(encoded('events', cut(Buffer.from(stream), at))).toBe(`[${wanted.join(',')}]`);
      }),
    );
  });
});

describe('an encoder refuses', () => {
  it.each<[ResultKind, string | undefined, Uint8Array]>([
    ['json', undefined, Buffer.from('{"a":')],
    ['json', undefined, Buffer.from('{} {}')],
    ['json', undefined, Buffer.from([0x22, 0xff, 0x22])],
    ['text', 'text/plain', Buffer.from([0xff])],
    ['text', 'text/plain', Buffer.from([0xe2, 0x82])],
    ['text', 'text/plain; charset=none-such', Buffer.from('x')],
    ['text', 'text/plain; charset=utf-16le', Buffer.from([0x61])],
  ])('%s (%s) that is none: %o', (kind, type, bytes) => {
    expect(encoded(kind, [bytes], type)).toBeUndefined();
  });
});

describe('text', () => {
  it.each([
    ['text/plain; charset=iso-8859-1', Buffer.from([0xe9]), 'é'],
    ['text/plain;charset="UTF-16LE"', Buffer.from('é😀', 'utf16le'), 'é😀'],
    ['text/plain; format=flowed; Charset=shift_jis', Buffer.from([0x83, 0x65]), 'テ'],
    ['text/plain', Buffer.from('\ufeffé'), '\ufeffé'],
  ])('in the charset of %s is decoded', (type, bytes, text) => {
    expect(JSON.parse(`"${encoded('text', [bytes], type)}"`)).toBe(text);
  });
});

describe('encodeResult', () => {
  it('takes the first kind that fits', () => {
    const kinds = ['json', 'text', 'bytes'] as const;
    expect(encodeResult(Buffer.from('{}'), kinds, undefined).kind).toBe('json');
    expect(encodeResult(Buffer.from('{'), kinds, undefined).kind).toBe('text');
    expect(encodeResult(randomBytes(100), kinds, undefined).kind).toBe('bytes');
  });
});

describe('an error that an answer reports', () => {
  it.each([
    ['{"type":"T","message":"m","more":1}', { type: 'T', message: 'm' }],
    ['{"type":"T"}', undefined],
    ['{"type":1,"message":"m"}', undefined],
    ['[]', undefined],
    ['null', undefined],
    ['nonsense', undefined],
  ])('is read from %s', (text, error) => {
    expect(errorOf(text)).toEqual(error);
  });

  it('is the first error event of a stream, whatever its data', () => {
    const encoder = createEncoder('events', undefined);
    encoder.push(Buffer.from('data: 1\n\nevent: error\ndata: plain\n\nevent: error\ndata: 2\n\n'));
    encoder.end();
    expect(encoder.error).toEqual({ type: 'Error', message: 'plain' });
  });
});
