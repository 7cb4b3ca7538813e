import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headerPairs, keepHeaders } from '../../src/delivery/answer-headers.ts';

type Pair = readonly [name: string, value: string | Uint8Array];

const keep = (...pairs: readonly Pair[]) => keepHeaders(pairs.flat().map(part => Buffer.from(part)));
const kept = (...pairs: readonly Pair[]) => headerPairs(keep(...pairs)!);
const sized = (name: string, bytes: number): Pair => [name, 'x'.repeat(bytes - name.length)];

describe('the headers of an answer', () => {
  it('are kept in their order and case, repeated ones as well', () => {
    const pairs: Pair[] = [
      ['Server', 'nginx'],
      ['x-CDN-Ray', '8f0:a1: b'],
      ['Link', '</a>; rel=next'],
      ['Empty', ''],
      ['link', '</b>;\trel=prev'],
    ];
    expect(kept(...pairs)).toEqual(pairs);
  });

  it.each(['Set-Cookie', 'CONNECTION', 'keep-alive', 'Date', 'transfer-Encoding'])('are without %s', name => {
    expect(kept(['A', '1'], [name, 'x'], ['B', '2'])).toEqual([
      ['A', '1'],
      ['B', '2'],
    ]);
    expect(keep([name, 'x'])).toBeUndefined();
  });

  it('are nothing where there are none', () => {
    expect(keep()).toBeUndefined();
    expect(keepHeaders(null)).toBeUndefined();
  });

  it.each<[string, readonly Pair[], readonly string[]]>([
    ['all of 2 KiB', [sized('A', 1_024), sized('B', 1_024)], ['A', 'B']],
    ['not a byte more', [sized('A', 1_024), sized('B', 1_025)], ['A']],
    ['the others, where one is too long', [sized('A', 2_049), sized('B', 100)], ['B']],
    ['the first, where there are too many', Array.from('ABC', name => sized(name, 700)), ['A', 'B']],
    ['what would fit without those that are left out', [sized('Date', 2_000), sized('B', 2_048)], ['B']],
  ])('are kept up to a limit, each whole: %s', (_, pairs, names) => {
    expect(kept(...pairs).map(([name]) => name)).toEqual(names);
  });

  it.each<[string, Uint8Array, string]>([
    ['UTF-8', Buffer.from('größe €'), 'größe €'],
    ['other bytes', Buffer.from([0x67, 0xf6, 0xdf]), 'g��'],
    ['ends of lines', Buffer.from('a\r\nSet-Cookie: b'), 'a��Set-Cookie: b'],
    ['NUL and DEL', Buffer.from('a\0b\x7fc'), 'a�b�c'],
    ['the sequences of terminals', Buffer.from('\x1b[31m\u009b31m'), '�[31m�31m'],
  ])('are safe text, whatever they are: %s', (_, bytes, text) => {
    expect(kept(['X', bytes])).toEqual([['X', text]]);
  });

  it('are read as they were kept, whatever they are', () => {
    const name = fc.stringMatching(/^X-[!#$%&'*+.^_`|~0-9A-Za-z-]{0,20}$/);
    const pair = fc.tuple(name, fc.oneof(fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 900 })));
    fc.assert(
      fc.property(fc.array(pair, { minLength: 1, maxLength: 6 }), pairs => {
        const text = keep(...pairs);
        const read = text === undefined ? [] : headerPairs(text);
        const names = pairs.map(([each]) => each);
        expect(names).toEqual(expect.arrayContaining(read.map(([each]) => each)));
        expect(read.map(([each, value]) => `${each}: ${value}`).join('\n')).toBe(text ?? '');
        expect(read.every(([, value]) => /^(\t|\P{Cc})*$/u.test(value))).toBe(true);
        expect(
          read.map(([each, value]) => each.length + value.length).reduce((a, b) => a + b, 0),
        ).toBeLessThan(2_049);
      }),
    );
  });
});
