/**
 * Keeps README.md true: its commands exist, its configuration loads, and its quick start is what
 * `afterword dev` prints and does.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Verdict } from '../../src/delivery/outcome.ts';
import { run, start } from '../commands/run.ts';
import { createFolder } from '../config/folder.ts';
import { startService } from '../support/service.ts';
import { codeBlocksOf, namesIn, readDocument, sectionOf, tableOf, ROOT } from './markdown.ts';
import { outcomeRows } from './outcomes.ts';
import { settled } from './settled.ts';

const text = readDocument('README.md');
const quickStart = codeBlocksOf(sectionOf(text, 'Quick start')).map(({ text: code }) => code);
const ownFunctions = codeBlocksOf(sectionOf(text, 'Your own functions'));
const manifest = JSON.parse(readDocument('package.json')) as {
  version: string;
  scripts: Record<string, string>;
};

/** Commands of npm itself. */
const NPM = new Set(['ci', 'install', 'link', 'pack']);

it.each(['README.md', 'CONTRIBUTING.md'])('the npm scripts that %s names exist', document => {
  const words = readDocument(document);
  const code = [...namesIn(words), ...codeBlocksOf(words).map(block => block.text)].join('\n');
  const named = [...code.matchAll(/\bnpm (?:run )?([a-z][\w:]*)/g)].map(([, name]) => name!);
  expect(named).toContain('test');
  expect(named.filter(name => !NPM.has(name) && !(name in manifest.scripts))).toEqual([]);
});

it('the version is that of the package', () => {
  expect(text).toContain(`afterword-${manifest.version}.tgz`);
  expect(readDocument('CHANGELOG.md')).toContain(`\n## [${manifest.version}] - `);
});

it('the table of commands is that of the command line', async () => {
  const told = tableOf(sectionOf(text, 'Commands'), 'command').flatMap(([command]) => namesIn(command!));
  for (const command of told) {
    expect(await run([...command.split(' ').slice(1), '--help'])).toMatchObject({ code: 0, stderr: '' });
  }
  const { stdout } = await run(['--help']);
  const real = [...sectionAfter(stdout, 'Commands:').matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name);
  expect(told.map(command => command.split(' ')[1])).toEqual(real);
});

function sectionAfter(help: string, title: string): string {
  return help.slice(help.indexOf(title)).split('\n\n')[0]!;
}

it.each(codeBlocksOf(text).filter(({ language }) => language === 'yaml'))(
  'the configuration loads: $text',
  ({ text: yaml }) => {
    const folder = createFolder(yaml);
    folder.write('greeter/main.py', '');
    folder.write('web/server.js', '');
    const { warnings, config } = folder.load({ SHOP_JWT_SECRET: 'x'.repeat(44) });
    expect(warnings).toEqual([]);
    expect([...config.apps.get('shop')!.keys()]).toEqual(['model', 'greeter', 'web']);
  },
);

it('the snippet for receivers is one that docs/receivers.md tests', () => {
  const tested = codeBlocksOf(readDocument('docs/receivers.md')).map(({ text: code }) => code);
  const shown = codeBlocksOf(sectionOf(text, 'In the receiver')).map(({ text: code }) => code);
  expect(shown).toHaveLength(1);
  expect(tested).toContain(shown[0]);
});

it('the metrics that the documents name exist', async () => {
  const named = namesIn(text + readDocument('docs/contract.md')).filter(name => /^afterword_\w+$/.test(name));
  const service = await startService({ apps: {} });
  const metrics = await (await fetch(`${service.admin}/metrics`)).text();
  await service.stop();
  expect(named.length).toBeGreaterThan(4);
  expect(named.filter(name => !metrics.includes(`# TYPE ${name} `))).toEqual([]);
});

it('the outcomes are those that the code decides', () => {
  const words: Record<Verdict, RegExp> = {
    delivered: /^delivered/,
    retry: /^tried again/,
    rejected: /^failed, not tried again/,
    blocked: /^failed/,
  };
  for (const { answer, told, verdicts } of outcomeRows(text)) {
    expect([answer, verdicts.map(verdict => words[verdict].test(told))]).toEqual([answer, [true]]);
  }
});

/** The call that `afterword dev` tells to paste, made as curl would; `parameters` in place of its own. */
async function paste(printed: string, parameters?: string): Promise<string> {
  const [, url] = /^curl '(.+)'/m.exec(printed)!;
  const [, own] = /-d '(.+)'/.exec(printed)!;
  const headers = [...printed.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name!, value!]);
  const answer = await fetch(url!, {
    method: 'POST',
    headers: Object.fromEntries(headers) as Record<string, string>,
    body: parameters ?? own!,
  });
  return answer.text();
}

const WELCOME = /Afterword is running\.[^]*?-d '.*'\n/;
const DELIVERY = /^\d\d:\d\d:\d\d\..*\n(?: {4}.*\n)+/m;

it('the quick start is what `afterword dev` prints and does', async () => {
  const [install, welcome, answer, delivery, , test] = quickStart;
  expect(install).toBe('npm ci && npm start\n');
  expect(test).toBe('npm ci && npm test\n');
  expect(manifest.scripts['start']).toBe('node bin/afterword dev');

  const data = mkdtempSync(join(tmpdir(), 'readme-'));
  onTestFinished(() => rmSync(data, { recursive: true }));
  const dev = start(['dev', '--port', '0', '--data', data], {
    env: { AFTERWORD_LOG_LEVEL: 'silent' },
  });
  const [printed] = await dev.stdout.match(WELCOME);
  expect(settled(printed)).toBe(settled(welcome!));
  expect(settled(await paste(printed))).toBe(settled(answer!));
  const [received] = await dev.stdout.match(DELIVERY);
  expect(settled(received)).toBe(settled(delivery!));
  dev.stop();
  expect(await dev.exit).toBe(0);
});

it.each(quickStart[4]!.trim().split('\n'))('the quick start serves an example by `%s`', async command => {
  const folder = join(ROOT, command.replace('npm start -- ', ''));
  const home = mkdtempSync(join(tmpdir(), 'readme-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const env = { PATH: process.env['PATH'], HOME: home, AFTERWORD_LOG_LEVEL: 'silent' };
  const dev = start(['dev', folder, '--port', '0', '--data', home], { cwd: ROOT, env });
  const [printed] = await dev.stdout.match(WELCOME);
  expect(JSON.parse(await paste(printed, '{"name":"Ada","text":"a great day"}'))).toMatchObject({
    app: basename(folder),
  });
  expect((await dev.stdout.match(DELIVERY))[0]).toContain('signature ok');
  dev.stop();
  expect(await dev.exit).toBe(0);
});

it.each(['main.py', 'main.ts'])('your own functions, in a %s', async file => {
  const shown = ownFunctions.find(({ label }) => label === `file=${file}`)!;
  const [command, answer, delivery] = ownFunctions.slice(2).map(({ text: code }) => code);
  const home = mkdtempSync(join(tmpdir(), 'readme-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const cwd = join(home, 'greeter');
  mkdirSync(cwd);
  writeFileSync(join(cwd, file), shown.text);

  const env = { PATH: process.env['PATH'], HOME: home, AFTERWORD_LOG_LEVEL: 'silent' };
  const dev = start([...command!.trim().split(' ').slice(1), '--port', '0'], { cwd, env });
  const [printed] = await dev.stdout.match(WELCOME);
  expect(settled(await paste(printed, '{"name":"Ada"}'))).toBe(settled(answer!));
  const [received] = await dev.stdout.match(DELIVERY);
  expect(settled(received)).toBe(settled(delivery!));
  dev.stop();
  expect(await dev.exit).toBe(0);
});
