/**
 * Keeps docs/functions.md true: its two files are run, and answer each call in its table as it says; its
 * errors are those of the runners, and its configuration loads.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { silentLogger } from '../../src/log.ts';
import { createService, type Service } from '../../src/service.ts';
import { createFolder } from '../config/folder.ts';
import { JWT_SECRET, PROJECT, testToken } from '../support/service.ts';
import { codeBlocksOf, namesIn, readDocument, sectionOf, tableOf } from './markdown.ts';

const text = readDocument('docs/functions.md');
const blocks = codeBlocksOf(text);
const rows = tableOf(sectionOf(text, 'Writing functions'), 'call');

describe.each([
  ['main.ts', 3],
  ['main.py', 4],
])('%s', (file, column) => {
  const folder = mkdtempSync(join(tmpdir(), 'functions-'));
  let service: Service;
  let base: string;

  beforeAll(async () => {
    writeFileSync(join(folder, file), blocks.find(({ label }) => label === `file=${file}`)!.text);
    const settings = {
      AFTERWORD_LISTEN: '127.0.0.1:0',
      AFTERWORD_ADMIN: '127.0.0.1:0',
      AFTERWORD_DATA: join(folder, 'data'),
      AFTERWORD_PROJECTS: JSON.stringify({ [PROJECT]: { jwt: { secret: JWT_SECRET } } }),
      AFTERWORD_APPS: JSON.stringify({ [`${PROJECT}/it`]: { runtime: 'cortex', entry: file } }),
    };
    const { config } = loadConfig({ env: { PATH: process.env['PATH'], ...settings }, cwd: folder });
    service = createService({ config, version: '0.0.0-test', log: silentLogger });
    base = `http://127.0.0.1:${(await service.start()).listen!.port}/v4/${PROJECT}/it`;
  });

  afterAll(async () => {
    await service.stop();
    rmSync(folder, { recursive: true });
  });

  it.each(rows.filter(row => row[column] !== ''))('%s %s', async (...row) => {
    const [[name], [parameters], status] = [namesIn(row[0]!), namesIn(row[1]!), Number(row[2])];
    const answer = await fetch(`${base}/${name}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${await testToken()}` },
      body: parameters!,
    });
    const got = await answer.text();
    expect(answer.status).toBe(status);
    for (const piece of namesIn(row[column]!)) expect(got).toContain(piece);
  });
});

it('the types of errors are those that the runners give', () => {
  const told = tableOf(sectionOf(text, 'Errors'), '`type`').flatMap(([type]) => namesIn(type!));
  expect(told).toHaveLength(3);
  for (const runner of [
    'node/error.ts node/call.ts',
    'python/afterword_runner/errors.py python/afterword_runner/calls.py',
  ]) {
    const source = runner
      .split(' ')
      .map(file => readDocument(`src/runtime/runners/${file}`))
      .join('\n');
    for (const type of told) expect(source).toContain(type);
  }
});

it('the configuration loads', () => {
  const yaml = blocks.find(({ language }) => language === 'yaml')!.text;
  const folder = createFolder(`projects: { p-demo: { jwt: { secret: ${JWT_SECRET} } } }\n${yaml}`);
  for (const name of ['chat', 'orders']) mkdirSync(join(folder.path, name));
  expect(folder.load().warnings).toEqual([]);
});
