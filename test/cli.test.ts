import { readFileSync } from 'node:fs';
import { WriteStream } from 'node:tty';
import type { Command } from 'commander';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createProgram } from '../src/cli.ts';
import { type Io, paint, printable } from '../src/commands/output.ts';
import { indentJson } from '../src/commands/received.ts';
import { Captured, run } from './commands/run.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The names that lead to each command; none lead to the program. */
function pathsIn(command: Command, path: readonly string[] = []): (readonly string[])[] {
  return [path, ...command.commands.flatMap(nested => pathsIn(nested, [...path, nested.name()]))];
}

describe('the frame', () => {
  it.each([['--version'], ['-V']])('%s prints the version', async flag => {
    expect(await run([flag])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it.each([
    ['--help', ['token', 'call', 'runs', 'listen', 'verify', 'config', 'Examples:']],
    ['token --help', ['--project', '--ttl', '--config', '--json']],
    ['call --help', ['--data', '--async', '--wait', '--webhook', '--token', '--json', 'Examples:']],
    ['runs --help', ['list', 'show', 'cancel', 'Examples:']],
    ['deliveries --help', ['list', 'show', 'redeliver', 'cancel', 'tail', 'Examples:']],
    ['deliveries list --help', ['--state', '--reason', '--host', '--status', '--since', '--until', '--all']],
    ['runs list --help', ['--state', '--app', '--limit', '--all', '--url', '--json']],
    ['runs show --help', ['--wait', '--timeout', '--project', '--json']],
    ['runs cancel --help', ['<run_id...>', '--token', '--json']],
    ['listen --help', ['--port', '--secret', '--forward-to', '--status', '--delay', '--json', 'Examples:']],
    ['verify --help', ['--signature', '--body', '--tolerance', '--json', 'Example:']],
    ['config check --help', ['--config', '--json']],
    ['migrate --help', ['--config', '--from', '--dry-run', '--json', 'Examples:']],
  ])('%s goes to standard output', async (argv, words) => {
    const { code, stdout, stderr } = await run(argv.split(' '));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const word of words) expect(stdout).toContain(word);
  });

  it.each(pathsIn(createProgram({} as Io)))('%j has examples of itself', async (...path) => {
    const { code, stdout } = await run([...path, '--help']);
    expect(code).toBe(0);
    const [, examples = ''] = stdout.split(/^Examples?:$/m);
    expect(examples).toContain(`afterword ${path.join(' ')}`);
  });

  it.each([
    ['', 'Usage: afterword'],
    ['config', 'Usage: afterword config'],
    ['tokn', "unknown command 'tokn'"],
    ['--nope', "unknown option '--nope'"],
    ['token extra --project p', 'too many arguments'],
    ['config chek', "unknown command 'chek'"],
  ])('%j is wrong usage', async (argv, message) => {
    const { code, stdout, stderr } = await run(argv.split(' ').filter(Boolean));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });
});

describe('colours', () => {
  afterEach(() => vi.unstubAllEnvs());
  const terminal = () =>
    Object.assign(new Captured(), {
      isTTY: true,
      getColorDepth: () => WriteStream.prototype.getColorDepth.call(process.stdout),
    });

  it.each([
    ['a terminal', terminal, {}, true],
    ['a terminal with NO_COLOR', terminal, { NO_COLOR: '1' }, false],
    ['a file', () => new Captured(), {}, false],
  ])('on %s', (_, stream, env, coloured) => {
    for (const name of ['NO_COLOR', 'FORCE_COLOR', 'NODE_DISABLE_COLORS', 'CI']) vi.stubEnv(name, undefined);
    vi.stubEnv('TERM', 'xterm-256color');
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    expect(paint(stream(), 'red', 'x')).toBe(coloured ? '\u001b[31mx\u001b[39m' : 'x');
  });
});

it.each([
  ['plain text, ünïcödé 🎉', 'plain text, ünïcödé 🎉'],
  ['\u001b[2J', '\\u001b[2J'],
  ['a\nb\tc', 'a\\u000ab\\u0009c'],
  ['\u200bzero\u2028', '\\u200bzero\\u2028'],
])('shows control characters of %j', (text, shown) => {
  expect(printable(text)).toBe(shown);
});

it.each([
  ['{}', '{}'],
  ['[[],{}]', '[\n  [],\n  {}\n]'],
  ['{"a":[1.10,true]}', '{\n  "a": [\n    1.10,\n    true\n  ]\n}'],
  ['{"a , [":"\\"}"}', '{\n  "a , [": "\\"}"\n}'],
  ['{"cut":"o', '{\n  "cut": "o'],
  ['{"a":1}}', '{\n  "a": 1\n}\n}'],
])('lays out %j', (text, lines) => {
  expect(indentJson(text)).toBe(lines);
});
