/**
 * Keeps README.md true: its commands exist, its configuration loads, and its quick start is what
 * `afterword dev` prints and does.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Verdict } from '../../src/delivery/outcome.ts';
import { run, start } from '../commands/run.ts';
import { createFolder } from '../config/folder.ts';
import { startService } from '../support/service.ts';
import { codeBlocksOf, namesIn, readDocument, sectionOf, tableOf } from './markdown.ts';
import { outcomeRows } from './outcomes.ts';

const text = readDocument('README.md');
const quickStart = codeBlocksOf(sectionOf(text, 'Quick start')).map(({ text: code }) => code);
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
    const { warnings, config } = createFolder(yaml).load({ SHOP_JWT_SECRET: 'x'.repeat(44) });
    expect(warnings).toEqual([]);
    expect(config.apps.get('shop')?.get('model')?.runtime).toBe('custom');
  },
);

it('the snippet for receivers is one that docs/receivers.md tests', () => {
  const tested = codeBlocksOf(readDocument('docs/receivers.md')).map(({ text: code }) => code);
  const shown = codeBlocksOf(text).filter(({ language }) => language === 'ts');
  expect(shown).toHaveLength(1);
  expect(tested).toContain(shown[0]!.text);
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

/** What differs from run to run. */
function settled(printed: string): string {
  return printed
    .replaceAll(/127\.0\.0\.1(:|%3A)\d+/g, '127.0.0.1$1PORT')
    .replaceAll(/Bearer [\w.…-]+/g, 'Bearer TOKEN')
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'RUN')
    .replaceAll(/(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.\d{3}/g, 'TIME')
    .replaceAll(/("run_time_ms": ?)[\d.]+/g, '$1MS')
    .replaceAll(/\d+ bytes/g, 'N bytes')
    .trim();
}

it('the quick start is what `afterword dev` prints and does', async () => {
  const [install, welcome, answer, delivery, test] = quickStart;
  expect(install).toBe('npm ci && npm start\n');
  expect(test).toBe('npm ci && npm test\n');
  expect(manifest.scripts['start']).toBe('node bin/afterword dev');

  const data = mkdtempSync(join(tmpdir(), 'readme-'));
  onTestFinished(() => rmSync(data, { recursive: true }));
  const dev = start(['dev', '--port', '0', '--data', data], {
    env: { AFTERWORD_LOG_LEVEL: 'silent' },
  });
  const [printed] = await dev.stdout.match(/Afterword is running\.[^]*?-d '.*'\n/);
  expect(settled(printed)).toBe(settled(welcome!));

  const [, url] = /^curl '(.+)'/m.exec(printed)!;
  const [, body] = /-d '(.+)'/.exec(printed)!;
  const headers = [...printed.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name!, value!]);
  const called = await fetch(url!, {
    method: 'POST',
    headers: Object.fromEntries(headers) as Record<string, string>,
    body: body!,
  });
  expect(settled(await called.text())).toBe(settled(answer!));
  const [received] = await dev.stdout.match(/^\d\d:\d\d:\d\d\..*\n(?: {4}.*\n)+/m);
  expect(settled(received)).toBe(settled(delivery!));
  dev.stop();
  expect(await dev.exit).toBe(0);
});
