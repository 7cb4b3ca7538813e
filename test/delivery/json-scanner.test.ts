import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonScanner } from '../../src/delivery/json-scanner.ts';

function scan(bytes: Uint8Array, cuts: readonly number[] = []): JsonScanner {
  const scanner = new JsonScanner();
  let from = 0;
  for (const cut of [...cuts].map(cut => cut % (bytes.length + 1)).sort((a, b) => a - b)) {
    scanner.push(bytes.subarray(from, cut));
    from = cut;
  }
  scanner.push(bytes.subarray(from));
  return scanner;
}

/** The judgement of the platform's own parser, with its tolerance for bad UTF-8 taken away. */
function parses(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

const accepted = [
  'null',
  ' true ',
  'false\n',
  '0',
  '-0',
  '-1.5e+10',
  '1E5',
  '1e-0',
  '123456789012345678901234567890.000',
  '""',
  '"\\u00e9\\n\\"\\\\\\/"',
  '"é€😀"',
  '[]',
  '[ ]',
  '{ }',
  '[1,[2,{"a":[]}],"x"]',
  '{"a":1,"a":2}',
  '\t{"a" : null , "b":[true,false]}\r\n',
];

const refused = [
  '',
  '   ',
  'nul',
  'nulll',
  'True',
  '01',
  '-',
  '-a',
  '1.',
  '.5',
  '1e',
  '1e+',
  '+1',
  '1 2',
  '"',
  '"\\x"',
  '"\\u12g4"',
  '"\n"',
  '[',
  ']',
  '[1,]',
  '[,1]',
  '[1 2]',
  '{',
  '}',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{a:1}',
  '{"a":1]',
  '[1}',
  '{} {}',
  '\ufeff{}',
  "'x'",
  'NaN',
];

describe('JsonScanner', () => {
  it.each(accepted)('accepts %j', text => expect(scan(Buffer.from(text)).complete).toBe(true));
  it.each(refused)('refuses %j', text => expect(scan(Buffer.from(text)).complete).toBe(false));

  it.each([
    ['a lone continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a code point above U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a sequence cut short', [0xe2, 0x82]],
  ])('refuses %s in a string', (_name, bytes) => {
    expect(scan(Buffer.from([0x22, ...bytes, 0x22])).complete).toBe(false);
  });

  it('agrees with JSON.parse on any value, however it is cut', () => {
    fc.assert(
      fc.property(fc.json(), fc.array(fc.nat(), { maxLength: 5 }), (text, cuts) => {
        expect(scan(Buffer.from(text), cuts).complete).toBe(true);
      }),
    );
  });

  it('agrees with JSON.parse on damaged values', () => {
    const damaged = fc
      .tuple(fc.json(), fc.nat(), fc.nat({ max: 255 }), fc.constantFrom('replace', 'insert', 'cut'))
      .map(([text, place, byte, how]) => {
        const bytes = Buffer.from(text);
        const at = place % (bytes.length + 1);
        const rest = how === 'insert' ? bytes.subarray(at) : bytes.subarray(at + 1);
        return how === 'cut'
          ? bytes.subarray(0, at)
          : Buffer.concat([bytes.subarray(0, at), Buffer.of(byte), rest]);
      });
    fc.assert(
      fc.property(damaged, fc.array(fc.nat(), { maxLength: 3 }), (bytes, cuts) => {
        expect(scan(bytes, cuts).complete).toBe(parses(bytes));
      }),
      { numRuns: 2000 },
    );
  });

  it('follows any depth', () => {
    const depth = 100_000;
    expect(scan(Buffer.from('['.repeat(depth) + ']'.repeat(depth))).complete).toBe(true);
    expect(scan(Buffer.from('['.repeat(depth) + ']'.repeat(depth - 1))).complete).toBe(false);
  });

  it.each([
    ['{"a":1}', 'object'],
    [' [1]', 'array'],
    ['"x"', 'scalar'],
    ['12', 'scalar'],
  ])('knows the root of %s', (text, root) => expect(scan(Buffer.from(text)).root).toBe(root));

  it.each([
    ['{"status_code":418}', 418],
    ['{"a":{"status_code":500},"status_code": 201 }', 201],
    ['{"status_code":200,"x":1}', 200],
    ['{"status_code":599', undefined],
    ['{"status_code":600}', undefined],
    ['{"status_code":199}', undefined],
    ['{"status_code":2000}', undefined],
    ['{"status_code":"418"}', undefined],
    ['{"status_code":418.0}', undefined],
    ['{"status_code":-418}', undefined],
    ['{"status_codes":418}', undefined],
    ['{"status_cod":418}', undefined],
    ['{"x":"status_code","y":418}', undefined],
    ['{"a":{"status_code":418}}', undefined],
    ['[{"status_code":418}]', undefined],
    ['{"status_code":[418]}', undefined],
    ['{"status_code":null,"n":418}', undefined],
  ])('reads the status of %s', (text, status) => {
    for (let cut = 0; cut <= text.length; cut++) {
      expect(scan(Buffer.from(text), [cut]).statusCode).toBe(status);
    }
  });
});
