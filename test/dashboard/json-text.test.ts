/**
 * JSON that is laid out has the tokens that it had, spelled as they were; a member is found without reading values.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { layOut, memberSpan } from '../../dashboard/src/json-text.ts';

/** Independent of what is tested: every token of a JSON text, by one expression. */
function tokensOf(text: string): string[] {
  return text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
}

function textOf(json: string, coloured?: number): string | undefined {
  return layOut(json, coloured)
    ?.map(({ text }) => text)
    .join('');
}

const space = fc.stringMatching(/^[ \t\n\r]{0,3}$/);
const scalar = fc.oneof(
  fc.constantFrom(
    '-0',
    '1e400',
    '1E-7',
    '1.10',
    '12345678901234567890',
    '0.1000000000000000055',
    'true',
    'null',
  ),
  fc.constantFrom(String.raw`"\u0041\/"`, String.raw`"a\\"`, String.raw`"\"{[,:"`, '"é😀"', '""'),
  fc.string({ unit: 'binary' }).map(text => JSON.stringify(text)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(number => JSON.stringify(number)),
);
const key = fc.oneof(
  fc.constantFrom('"a"', '"a"', String.raw`"\u0061"`),
  fc.string().map(text => JSON.stringify(text)),
);

/** Spelled in ways that reading and writing would not keep, with white space anywhere. */
const { json } = fc.letrec<{ json: string; array: string; object: string }>(tie => ({
  json: fc.oneof({ depthSize: 'small', withCrossShrink: true }, scalar, tie('array'), tie('object')),
  array: fc
    .array(fc.tuple(space, tie('json'), space), { maxLength: 4 })
    .map(items => `[${items.map(item => item.join('')).join(',')}]`),
  object: fc
    .array(fc.tuple(space, key, space, fc.constant(':'), space, tie('json'), space), { maxLength: 4 })
    .map(members => `{${members.map(member => member.join('')).join(',')}}`),
}));

describe('JSON laid out', () => {
  it('has the tokens that it had, in their spelling', () => {
    fc.assert(
      fc.property(json, fc.nat({ max: 10 }), (text, coloured) => {
        expect(tokensOf(textOf(text)!)).toEqual(tokensOf(text));
        expect(textOf(text, coloured)).toBe(textOf(text));
      }),
    );
  });

  it('is laid out already, once it is', () => {
    fc.assert(
      fc.property(json, text => {
        expect(textOf(textOf(text)!)).toBe(textOf(text));
      }),
    );
  });

  it('goes as far as a text that is cut off does', () => {
    fc.assert(
      fc.property(json, fc.nat(), (text, at) => {
        const cut = text.slice(0, at % (text.length + 1));
        expect(textOf(cut)?.replaceAll(/\s/g, '')).toBe(cut.replaceAll(/\s/g, ''));
      }),
    );
  });

  it('stands in lines, two spaces further within', () => {
    const lines = ['{', '  "a": [', '    1,', '    {}', '  ],', '  "b": []', '}'];
    expect(textOf('{"a":[1,{ }],"b":[\n]}')).toBe(lines.join('\n'));
  });

  it('tells keys, strings, numbers and literals apart', () => {
    const pieces = layOut('{"a":["a",-1,null]}')!.filter(({ kind }) => kind !== 'plain');
    expect(pieces.map(({ kind, text }) => [kind, text])).toEqual([
      ['key', '"a"'],
      ['string', '"a"'],
      ['number', '-1'],
      ['literal', 'null'],
    ]);
  });

  it('tells no more pieces apart than it may', () => {
    const kinds = layOut('[1,2,3,4]', 2)!.map(({ kind }) => kind);
    expect(kinds.filter(kind => kind !== 'plain')).toHaveLength(2);
  });

  it('is not as wide as it is deep', () => {
    expect(textOf('['.repeat(10_000))!.length).toBeLessThan(10_000 * 60);
  });

  it.each(['no such route', '12 34', '"a" b', '[1]]', '[1}', '{"a" 1}', 'nul!', '<p>', '{"a":1} {'])(
    'is not made of %j',
    text => expect(layOut(text)).toBeUndefined(),
  );
});

describe('a member', () => {
  const cut = (text: string, ...keys: string[]): string | undefined => {
    const span = memberSpan(text, keys);
    return span && text.slice(span.start, span.end);
  };

  it('is found as it was written, behind any other', () => {
    fc.assert(
      fc.property(json, json, space, (before, member, gap) => {
        const text = `{"x":${before},${gap}"request"${gap}:${gap}{"y":${before},"body":${gap}${member}${gap}}${gap}}`;
        expect(cut(text, 'request', 'body')).toBe(member);
      }),
    );
  });

  it.each([
    ['{"a":{"b":1}}', ['a', 'c']],
    ['{}', ['a']],
    ['[1]', ['a']],
    ['{"a":"{\\"b\\":1}"}', ['a', 'b']],
    ['', ['a']],
  ])('of %s is not there by the keys %j', (text, keys) => expect(cut(text, ...keys)).toBeUndefined());

  it('is found by a key however that is spelled', () => {
    expect(cut(String.raw`{"\u0061": 12345678901234567890}`, 'a')).toBe('12345678901234567890');
  });
});
