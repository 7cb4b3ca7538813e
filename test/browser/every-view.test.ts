/** What holds for every view of the dashboard, by day and by night, on a desk and in a hand: nobody is kept out. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { DESKTOP, describeInBrowser, PHONE, useBrowser } from '../support/browser.ts';
import { pastOf } from './past.ts';
import { useScene } from './scene.ts';
import { viewsOf, visit } from './views.ts';

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

const APPEARANCES = [
  ['by day', DESKTOP, 'light'],
  ['by night', DESKTOP, 'dark'],
  ['in a hand', PHONE, 'light'],
  ['in a hand by night', PHONE, 'dark'],
] as const;

/** What hinders people who do not see, hear or point as others do. */
const BARRIERS = `axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(
  ({ id, impact, nodes }) => nodes.map(({ target }) => impact + ': ' + id + ' at ' + target.join(' '))))`;

const OVERHANG = 'Math.max(0, document.scrollingElement.scrollWidth - innerWidth)';

/** By appearance; those without a fault are left out. */
async function faultsOf(page: Page): Promise<Record<string, unknown>> {
  const faults: Record<string, unknown> = {};
  for (const [name, viewport, colorScheme] of APPEARANCES) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    const overhang = await page.evaluate<number>(OVERHANG);
    const barriers = await page.evaluate<string[]>(BARRIERS);
    if (overhang > 0 || barriers.length > 0) faults[name] = { overhang, barriers };
  }
  return faults;
}

describeInBrowser('every view', () => {
  const open = useBrowser();
  const past = pastOf({ deliveries: 2_000, hours: 4, runs: 20 });
  const scene = useScene(past);

  it.each(viewsOf(past))('$name', async view => {
    const page = await open({ baseURL: scene.origin, scripts: [AXE] });
    await visit(page, view);
    expect(await faultsOf(page)).toEqual({});
  });
});

describeInBrowser('the way in', () => {
  const open = useBrowser();
  const scene = useScene({ adminToken: 'an-admin-token-of-this-test' });

  it('hinders nobody', async () => {
    const page = await open({ baseURL: scene.origin, scripts: [AXE] });
    await page.goto('/');
    await page.getByLabel('Admin token').waitFor();
    expect(await faultsOf(page)).toEqual({});
  });

  it('would be told of a field without a name, and of one that is too wide', async () => {
    const page = await open({ baseURL: scene.origin, scripts: [AXE] });
    await page.goto('/');
    await page.getByLabel('Admin token').waitFor();
    await page.evaluate("document.querySelector('label').replaceWith(document.querySelector('input'))");
    await page.evaluate("document.querySelector('input').style.minWidth = '600px'");
    const barriers = expect.arrayContaining(['critical: label at input']);
    expect(await faultsOf(page)).toMatchObject({
      'by day': { overhang: 0, barriers },
      'in a hand': { overhang: expect.toSatisfy((px: number) => px > 0), barriers },
    });
  });
});
