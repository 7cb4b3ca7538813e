/** Keeps docs/architecture.md true: its parts are those of src/, its files exist, its data directory is real. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startService } from '../support/service.ts';
import { namesIn, ROOT, readDocument, sectionOf, tableOf } from './markdown.ts';

const text = readDocument('docs/architecture.md');

it('tells of every part of src/, and of no other', () => {
  const told = tableOf(sectionOf(text, 'Parts'), 'in `src/`').flatMap(([parts]) => namesIn(parts!));
  const real = readdirSync(join(ROOT, 'src'), { withFileTypes: true });
  expect(told.sort()).toEqual(
    real.map(entry => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort(),
  );
});

it('names files that exist', () => {
  const files = namesIn(text).filter(name => /^[\w./-]+\.ts$/.test(name));
  const homes = ['', 'src', 'src/gateway', 'src/config', 'src/store'];
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter(file => !homes.some(home => existsSync(join(ROOT, home, file))))).toEqual([]);
});

it('names every file of a data directory', async () => {
  const names = namesIn(sectionOf(text, 'The data directory'));
  const told = new Set(names.map(name => name.replace(/\/$/, '')));
  const service = await startService({ apps: {} });
  const made = readdirSync(service.data);
  await service.stop();
  expect(made).toContain('afterword.db-wal');
  expect(made.filter(name => !told.has(name))).toEqual([]);
});
