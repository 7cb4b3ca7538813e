/** Keeps docs/scaling.md true: its configurations load, and its times, metrics and commands are the real ones. */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LEASE } from '../../src/store/postgres/lease.ts';
import { run } from '../commands/run.ts';
import { createFolder } from '../config/folder.ts';
import { makeCertificate } from '../support/certificate.ts';
import { codeBlocksOf, namesIn, readDocument, sectionOf, tableOf } from './markdown.ts';

const text = readDocument('docs/scaling.md');

const ENV = {
  ADMIN_TOKEN: 't',
  DB_PASSWORD: 'p',
  ENCRYPTION_KEY: 'ab'.repeat(32),
  NEW_KEY: 'cd'.repeat(32),
  OLD_KEY: 'ab'.repeat(32),
  SHOP_JWT_SECRET: 'x'.repeat(32),
};

it.each(codeBlocksOf(text).filter(({ language }) => language === 'yaml'))(
  'a configuration loads: $text',
  ({ text: yaml }) => {
    const folder = createFolder(yaml);
    const keys = join(folder.path, 'keys');
    folder.write('keys/placeholder', '');
    makeCertificate(keys, 'db.internal');
    renameSync(join(keys, 'cert.pem'), join(keys, 'ca.pem'));
    expect(folder.mistakes(ENV)).toEqual([]);
    expect(folder.load(ENV).warnings).toEqual([]);
  },
);

it('the times of a takeover are those of the store', () => {
  const told = sectionOf(text, 'When something breaks');
  expect(LEASE.beat).toBe(1_000);
  expect(told).toContain('shows once a second that it lives');
  expect(told).toContain(`once that row is ${LEASE.dead / 1000} s old`);
  expect(told).toContain(`could not show it for ${LEASE.valid / 1000} s`);
  expect(LEASE.look).toBe(500);
  expect(told).toContain('they look twice a second');
  expect(LEASE.dead + 2 * LEASE.look).toBeLessThanOrEqual(5_000);
  expect(told).toContain('within 5 s');
});

it('the roles are those of the configuration', () => {
  const told = tableOf(sectionOf(text, 'Roles'), '`role`').flatMap(([role]) => namesIn(role!));
  const database = `database: postgres://u@h/d\nencryptionKey: ${ENV.ENCRYPTION_KEY}\n`;
  for (const role of told) {
    expect(createFolder(`${database}role: ${role}`).load().config.role).toBe(role);
  }
  const [mistake] = createFolder(`${database}role: none`).mistakes();
  for (const role of told) expect(mistake).toContain(role);
});

it('the metrics exist', () => {
  const named = namesIn(text).filter(name => /^afterword_\w+$/.test(name));
  const known = readDocument('README.md');
  expect(named.length).toBeGreaterThan(2);
  expect(named.filter(name => !known.includes(`\`${name}\``))).toEqual([]); // whose names are tested
});

it('the options of the commands exist', async () => {
  const { stdout: help } = await run(['migrate', '--help']);
  const code = [...namesIn(text), ...codeBlocksOf(text).map(block => block.text)];
  const options = code
    .filter(each => each.includes('afterword migrate'))
    .flatMap(each => each.match(/--[\w-]+/g) ?? []);
  expect(options).toContain('--from');
  expect(options.filter(option => !help.includes(option))).toEqual([]);
});
