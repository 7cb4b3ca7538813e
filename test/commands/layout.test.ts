/**
 * Tables and facts on a terminal.
 */
import { expect, it } from 'vitest';
import { createTable, factLines } from '../../src/commands/layout.ts';
import { Captured } from './run.ts';

const COLUMNS = [
  { title: 'ID', cell: ([id]: readonly string[]) => id! },
  { title: 'TARGET', cell: ([, target]: readonly string[]) => target! },
];

it.each([
  [undefined, 'aaaa  https://a.example/a/long/path'],
  [100, 'aaaa  https://a.example/a/long/path'],
  [26, 'aaaa  https://a.example/a…'],
  [5, 'aaaa  https://a…'],
])('the last column gives way in a terminal of %j columns', (columns, line) => {
  const stream = Object.assign(new Captured(), { columns });
  const table = createTable(stream, COLUMNS);
  table.add([]);
  table.add([['aaaa', 'https://a.example/a/long/path']]);
  table.add([['b', '\u001b[2J']]);
  expect(stream.lines).toEqual(['ID    TARGET', line, 'b     \\u001b[2J']);
});

it('leaves out the facts that there are not', () => {
  const facts = [
    ['run', '1'],
    ['none', undefined],
    ['empty', ''],
    ['state', 'a\nb', 'red'],
  ] as const;
  expect(factLines(new Captured(), facts)).toEqual(['run       1', 'state     a\\u000ab']);
});
