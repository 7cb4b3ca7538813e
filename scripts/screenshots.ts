/**
 * Takes the pictures of the dashboard that README.md shows, into docs/images/: of a service with some days of work
 * behind it, in a real browser, by day and by night. Nothing of it leaves this machine.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { loadConfig } from '../src/config/load.ts';
import { silentLogger } from '../src/log.ts';
import { createService, type Service } from '../src/service.ts';
import { packageVersion } from '../src/version.ts';
import { launchChromium } from '../test/support/browser-program.ts';
import { fillMillion, newestOf } from '../test/support/million.ts';
import { APPS } from '../test/support/million-sql.ts';

const IMAGES = join(dirname(import.meta.dirname), 'docs', 'images');
const PROJECTS = ['shop', 'lab'] as const;
const DAY_MS = 86_400_000;

const DESK = { viewport: { width: 1280, height: 800 } } as const;
const HAND = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 } as const;

const until = Date.now();
const past = { deliveries: 160_000, from: until - 8 * DAY_MS, until };
const failed = newestOf(past, 'missing');

const PICTURES: readonly (readonly [name: string, path: string, size: BrowserContextOptions])[] = [
  ['overview', '/', DESK],
  ['deliveries', '/deliveries', DESK],
  ['delivery', `/deliveries/${failed}`, DESK],
  ['phone', `/deliveries/${failed}`, HAND],
];

const data = await mkdtemp(join(tmpdir(), 'afterword-pictures-'));
// What is pending is sent, and goes to somebody who never answers.
const callers: Socket[] = [];
const deaf = createServer(socket => callers.push(socket)).listen(0, '127.0.0.1');
try {
  await once(deaf, 'listening');
  const { port } = deaf.address() as AddressInfo;
  fillMillion({
    ...past,
    data,
    projects: PROJECTS,
    runEvery: 10,
    pendingTarget: `http://127.0.0.1:${port}/hook`,
  });
  const service = await serve();
  const browser = await launchChromium();
  try {
    await mkdir(IMAGES, { recursive: true });
    for (const picture of PICTURES) await take(browser, service.origin, picture);
  } finally {
    await browser.close();
    deaf.close();
    for (const socket of callers) socket.destroy();
    await service.stop();
  }
} finally {
  await rm(data, { recursive: true, force: true });
}

async function serve(): Promise<{ readonly origin: string; readonly stop: Service['stop'] }> {
  const apps = PROJECTS.flatMap(project => APPS.map(app => `${project}/${app}`));
  const file = join(data, 'afterword.yaml');
  const settings = {
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    data,
    projects: Object.fromEntries(PROJECTS.map(project => [project, { jwt: { secret: 'x'.repeat(32) } }])),
    apps: Object.fromEntries(apps.map(app => [app, { runtime: 'cortex', url: 'http://127.0.0.1:9' }])),
    webhooks: { allowTargets: ['127.0.0.0/8'], attemptTimeout: '5m' },
  };
  await writeFile(file, JSON.stringify(settings)); // JSON is YAML
  const { config } = loadConfig({ file, env: {}, cwd: data });
  const service = createService({ config, version: packageVersion(), log: silentLogger });
  const { admin } = await service.start();
  return { origin: `http://127.0.0.1:${admin.port}`, stop: () => service.stop() };
}

async function take(browser: Browser, origin: string, [name, path, size]: (typeof PICTURES)[number]) {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ ...size, colorScheme, reducedMotion: 'reduce' });
    await page.goto(origin + path);
    await allRead(page);
    const suffix = colorScheme === 'dark' ? '-dark' : '';
    await page.screenshot({ path: join(IMAGES, `${name}${suffix}.png`) });
    await page.close();
  }
}

async function allRead(page: Page): Promise<void> {
  await page.locator('main h2, main tbody tr').first().waitFor();
  await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });
}
