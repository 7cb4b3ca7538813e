import { describe, expect, it } from 'vitest';
import { createTemplate } from '../../src/config/variables.ts';
import { readYaml } from '../../src/config/yaml.ts';

const read = (text: string) => readYaml(createTemplate(text, {}));

describe('YAML', () => {
  it('becomes plain data', () => {
    const { value, faults } = read('a: 1\nb: [x, true, null]\nc: { d: "1" }\n007: e\ntrue: f\n');
    expect(value).toEqual({ a: 1, b: ['x', true, null], c: { d: '1' }, '007': 'e', true: 'f' });
    expect(faults).toEqual([]);
  });

  it('knows the line of every key and item', () => {
    const { lineOf } = read('# first\na:\n  b: 1\n  c:\n    - x\n    - y\n\nd: { e: 1,\n  f: 2 }\n');
    const lines = [
      ['a'],
      ['a', 'b'],
      ['a', 'c', 1],
      ['d', 'e'],
      ['d', 'f'],
      ['a', 'nope', 'x'],
      ['nope'],
      [],
    ];
    expect(lines.map(lineOf)).toEqual([2, 3, 6, 8, 9, 2, 1, 1]);
  });

  it('resolves anchors and merges', () => {
    const { value, faults, lineOf } = read(
      'a: &a\n  x: 1\n  y: 2\nb: *a\nc:\n  <<: *a\n  y: 3\nd:\n  <<: [{ x: 8 }, *a]\n',
    );
    expect(value).toEqual({ a: { x: 1, y: 2 }, b: { x: 1, y: 2 }, c: { x: 1, y: 3 }, d: { x: 8, y: 2 } });
    expect(faults).toEqual([]);
    expect(
      [
        ['c', 'x'],
        ['c', 'y'],
      ].map(lineOf),
    ).toEqual([2, 7]);
  });

  it('gives keys like __proto__ no meaning', () => {
    const { value } = read('__proto__: { polluted: 1 }\nconstructor: 2\n');
    expect(Object.keys(value as object)).toEqual(['__proto__', 'constructor']);
    expect((value as { polluted?: number }).polluted).toBeUndefined();
  });

  it.each([
    [
      'a key given twice',
      'a: 1\nb:\n  c: 1\n  c: 2\n',
      { line: 4, path: ['b', 'c'], text: 'is given twice, first on line 3' },
    ],
    [
      'an unknown alias',
      'a: 1\nb: *hunter2\n',
      { line: 2, path: ['b'], text: 'the alias names no anchor set before it' },
    ],
    [
      'an alias inside its anchor',
      'a: &a\n  b: *a\n',
      { line: 2, path: ['a', 'b'], text: 'the alias stands inside its own anchor' },
    ],
    ['a merge of text', 'a:\n  <<: hunter2\n', { line: 2, path: ['a'], text: '<< merges maps only' }],
    ['a map as a key', '? {a: 1}\n: 2\n', { line: 1, path: [], text: 'a key must be text' }],
    [
      'an unknown tag',
      'a: !hunter2 x\n',
      { line: 1, path: [], text: expect.stringContaining('unknown tag') },
    ],
  ])('reports %s and reads on', (_, text, fault) => {
    const { value, faults } = read(text);
    expect(faults).toEqual([fault]);
    expect(value).toBeDefined();
  });

  it.each([
    ['a: 1\nb: "x', 2],
    ['a: 1\n\tb: 2\n', 2],
    ['a: b: c\n', 1],
    ['a: @hunter2\n', 1],
    ['a: [1, 2\n', 2],
    ['a: 1\n---\nb: 1\n', 2],
    ['a: "\\q"\n', 1],
    ['listen: [::1]:8080\n', 1],
  ])('tells the line where %j is not YAML, once and without its text', (text, line) => {
    const { value, faults } = read(text);
    expect(value).toBeUndefined();
    expect(faults.filter(fault => fault.line === line)).toEqual([
      { line, path: [], text: expect.any(String) },
    ]);
    expect(JSON.stringify(faults)).not.toContain('hunter2');
  });
});
