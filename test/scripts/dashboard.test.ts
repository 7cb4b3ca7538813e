/**
 * Building the dashboard: what is there afterwards, and that at no moment a page names a file that is not there.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';

const SCRIPT = join(import.meta.dirname, '..', '..', 'scripts', 'dashboard.ts');

/** A page in a folder of its own. */
function createPage(): string {
  const page = temporaryDirectory();
  mkdirSync(join(page, 'public'));
  writeFileSync(join(page, 'vite.config.ts'), 'export default {};');
  writeFileSync(join(page, 'index.html'), '<!doctype html><script type="module" src="/main.ts"></script>');
  writeFileSync(join(page, 'public', 'favicon.svg'), '<svg/>');
  return page;
}

function write(page: string, version: number): void {
  writeFileSync(join(page, 'main.ts'), `document.title = 'version ${version}' as string;`);
}

/** Exit code of a build; `look` is called again and again meanwhile. */
async function build(page: string, look = (): void => {}): Promise<number | null> {
  const child = spawn(process.execPath, [SCRIPT, page], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  while (child.exitCode === null && child.signalCode === null) {
    look();
    await setImmediate();
  }
  return ((await exit) as [number | null])[0];
}

const readIndex = (page: string): string => readFileSync(join(page, 'dist', 'index.html'), 'utf8');
const scriptsOf = (index: string): string[] => [...index.matchAll(/src="([^"]+)"/g)].map(([, src]) => src!);
const filesOf = (page: string): string[] =>
  globSync('dist/**', { cwd: page, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => entry.name)
    .sort();

it('replaces what was built before, without a gap', async () => {
  const page = createPage();
  write(page, 1);
  expect(await build(page)).toBe(0);
  const first = readIndex(page);
  expect(scriptsOf(first)).toEqual([expect.stringMatching(/^\/assets\/index-[\w-]+\.js$/)]);
  expect(filesOf(page)).toEqual(['favicon.svg', expect.stringMatching(/^index-.+\.js$/), 'index.html']);
  writeFileSync(join(page, 'dist', 'left-over.js'), '');

  write(page, 2);
  const missing: string[] = [];
  let looks = 0;
  const look = (): void => {
    looks += 1;
    const index = readIndex(page);
    const gone = scriptsOf(index).filter(src => !existsSync(join(page, 'dist', src)));
    if (readIndex(page) === index) missing.push(...gone);
  };
  expect(await build(page, look)).toBe(0);
  expect(missing).toEqual([]);
  expect(looks).toBeGreaterThan(1);
  const second = readIndex(page);
  expect(second).not.toBe(first);
  expect(filesOf(page)).toEqual(['favicon.svg', expect.stringMatching(/^index-.+\.js$/), 'index.html']);
  expect(readFileSync(join(page, 'dist', scriptsOf(second)[0]!), 'utf8')).toContain('version 2');
});

it('leaves what was there when it fails', async () => {
  const page = createPage();
  write(page, 1);
  expect(await build(page)).toBe(0);
  const [before, names] = [readIndex(page), readdirSync(page)];
  writeFileSync(join(page, 'main.ts'), 'this is no program');
  expect(await build(page)).not.toBe(0);
  expect([readIndex(page), readdirSync(page)]).toEqual([before, names]);
});
