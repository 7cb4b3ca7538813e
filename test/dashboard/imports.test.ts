/**
 * The page speaks HTTP alone: it imports nothing of the service, and only what it is made with.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const DASHBOARD = join(import.meta.dirname, '..', '..', 'dashboard');
const PACKAGES = /^(?:preact|preact\/hooks|@preact\/signals|uplot|uplot\/dist\/uPlot\.min\.css)$/;

const files = globSync('src/**/*.{ts,tsx}', { cwd: DASHBOARD });

function importsOf(file: string): string[] {
  // Without the text of templates: code to copy has imports too.
  const text = readFileSync(join(DASHBOARD, file), 'utf8').replaceAll(/`[^`]*`/g, '');
  const forms = [/^(?:import|export)\b[^'";]*?\bfrom\s+'([^']+)'/gm, /^import\s+'([^']+)'/gm];
  return forms.flatMap(form => [...text.matchAll(form)].map(match => match[1]!));
}

describe('the page', () => {
  it('is there', () => expect(files.length).toBeGreaterThan(10));

  it.each(files)('%s imports its own, or what the page is made with', file => {
    expect(importsOf(file).filter(name => !isAllowed(file, name))).toEqual([]);
  });
});

function isAllowed(file: string, name: string): boolean {
  if (!name.startsWith('.')) return PACKAGES.test(name);
  return relative(join(DASHBOARD, 'src'), join(DASHBOARD, dirname(file), name))[0] !== '.';
}
