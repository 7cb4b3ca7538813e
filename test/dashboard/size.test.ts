/** The page is small: all of it together, as it goes over the wire. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type Rolldown } from 'vite';
import { expect, it } from 'vitest';

const PAGE = fileURLToPath(new URL('../../dashboard', import.meta.url));
const ALLOWED = 80_000;

it(`has at most ${ALLOWED} bytes`, async () => {
  const { output } = (await build({
    root: PAGE,
    configFile: `${PAGE}/vite.config.ts`,
    logLevel: 'warn',
    build: { write: false },
  })) as Rolldown.RolldownOutput;
  const sizes = output.map(file => {
    const content = file.type === 'chunk' ? file.code : file.source;
    return [file.fileName, gzipSync(content).byteLength] as const;
  });
  const whole = sizes.reduce((sum, [, size]) => sum + size, 0);
  expect(whole).toBeLessThan(ALLOWED);
  expect(whole).toBeGreaterThan(10_000);
});
