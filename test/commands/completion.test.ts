/**
 * `afterword completion`: its scripts in the shells themselves, as far as they are installed. Bash is taken for
 * granted.
 */
import { spawnSync } from 'node:child_process';
import type { Command } from 'commander';
import { beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli.ts';
import type { Io } from '../../src/commands/output.ts';
import { run } from './run.ts';

type Complete = (script: string, words: readonly string[]) => string[];

/** What a shell offers for the last of the words, which stand behind the name of the program. */
const SHELLS: Readonly<Record<string, Complete>> = {
  bash: (script, words) =>
    linesOf(
      'bash',
      `${script}\nCOMP_WORDS=(afterword "$@"); COMP_CWORD=$#; _afterword; printf '%s\\n' "\${COMPREPLY[@]}"`,
      words,
    ),
  // What its completion system would do with the words: keep those that begin so.
  zsh: (script, words) =>
    linesOf(
      'zsh',
      `compdef() { : }
       _files() { : }
       compset() { last=\${last#*=} }
       compadd() { shift; for each in "$@"; do [[ $each == "$last"* ]] && print -r -- "$each"; done }
       ${script}
       words=(afterword "$@"); CURRENT=\${#words}; last=\${words[-1]}; _afterword; true`,
      words,
    ),
  // It would take options among the words for its own.
  fish: (script, words) =>
    linesOf('fish', `${script}\ncomplete -C "$LINE"`, [], { LINE: ['afterword', ...words].join(' ') }).map(
      line => line.replace(/=?\t.*/, ''),
    ),
};

function linesOf(
  shell: string,
  program: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): string[] {
  const options = { encoding: 'utf8', env: { ...process.env, ...env } } as const;
  const { stdout, stderr, status } = spawnSync(shell, ['-c', program, 'script', ...words], options);
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout.split('\n').filter(line => line !== '');
}

const isInstalled = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0;

/** Every command with its name behind the program's. */
function commandsOf(command: Command, path: readonly string[] = []): [readonly string[], Command][] {
  const nested = command.commands.flatMap(each => commandsOf(each, [...path, each.name()]));
  return [[path, command], ...nested];
}

const tree = commandsOf(createProgram({} as Io));
const longOf = (command: Command): string[] => [
  ...command.options.map(({ long }) => long!).filter(long => long !== undefined),
  '--help',
];

describe.each(Object.entries(SHELLS))('%s', (shell, complete) => {
  const installed = shell === 'bash' || isInstalled(shell);
  let script: string;

  beforeAll(async () => {
    ({ stdout: script } = await run(['completion', shell]));
  });

  describe.skipIf(!installed)('where it is installed', () => {
    it('offers the commands of every command', () => {
      for (const [path, { commands }] of tree.filter(([, { commands }]) => commands.length > 0)) {
        const offered = complete(script, [...path, '']).filter(word => !word.startsWith('-'));
        expect([path, offered.sort()]).toEqual([path, commands.map(each => each.name()).sort()]);
      }
    });

    it('offers the options of every command', () => {
      for (const [path, command] of tree) {
        expect([path, complete(script, [...path, '--']).sort()]).toEqual([path, longOf(command).sort()]);
      }
    });

    it.each<[string[], string[]]>([
      [['deliv'], ['deliveries']],
      [['--ver'], ['--version']],
      [
        ['deliveries', 'list', '--state', ''],
        ['pending', 'delivered', 'failed', 'cancelled'],
      ],
      [['deliveries', 'list', '--app', 'tail', '--state', 'f'], ['failed']],
      [['runs', 'list', '--state', 'qu'], ['queued']],
      [['deliveries', 'list', '--limit', ''], []],
      [['completion', 'b'], ['bash']],
      [['deliveries', 'redeliver', '--state', 'failed', '--y'], ['--yes']],
      [['nothing', 'of', 'ours', '--ver'], ['--version']],
    ])('after %j offers %j', (words, offered) => {
      expect(complete(script, words).sort()).toEqual(offered.toSorted());
    });
  });
});

it('completes the value behind an equals sign, which bash takes for a word of its own', async () => {
  const { stdout } = await run(['completion', 'bash']);
  const state = ['deliveries', 'list', '--state', '='];
  expect(SHELLS['bash']!(stdout, [...state, 'fa'])).toEqual(['failed']);
  expect(SHELLS['bash']!(stdout, state)).toEqual(['pending', 'delivered', 'failed', 'cancelled']);
});

it.each([[['completion']], [['completion', 'tcsh']]])('%j is wrong usage', async argv => {
  expect(await run(argv)).toMatchObject({ code: 2, stdout: '' });
});
