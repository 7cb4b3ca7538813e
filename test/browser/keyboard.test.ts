/** The dashboard without a mouse: from the top of the page to a redelivery. */
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { describeInBrowser, useBrowser } from '../support/browser.ts';
import { rowOf, shown } from './looking.ts';
import { useScene } from './scene.ts';

describeInBrowser('the dashboard by keyboard alone', () => {
  const open = useBrowser();
  const scene = useScene();

  /** What has the focus, by its role's element and what it says. */
  const focused = (page: Page) =>
    page.evaluate<string>(`(() => {
      const { tagName, textContent, ariaLabel } = document.activeElement;
      return tagName.toLowerCase() + ' ' + (ariaLabel ?? textContent).trim();
    })()`);

  async function tabTo(page: Page, wanted: RegExp): Promise<void> {
    const passed: string[] = [];
    while (!wanted.test(passed.at(-1) ?? '')) {
      await page.keyboard.press('Tab');
      passed.push(await focused(page));
      if (passed.length > 80) throw new Error(`no ${wanted} among ${passed.join(', ')}`);
    }
  }

  it('skips to the content, and jumps to a run', async () => {
    const page = await open({ baseURL: scene.origin });
    await page.goto('/');
    await shown(page, 'Overview');
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('a Skip to the content');
    await page.keyboard.press('Enter');
    expect(await focused(page)).toMatch(/^main/);
    await page.keyboard.press('/');
    expect(await focused(page)).toBe('input Go to a run id');
    await page.keyboard.type('none');
    await page.keyboard.press('Enter');
    await page.getByText(/A run id looks like/).waitFor();
  });

  it('selects a delivery and sends it again', async () => {
    const receiver = await scene.receiver(500);
    const older = await scene.call(receiver.url);
    const newer = await scene.call(receiver.url);
    const page = await open({ baseURL: scene.origin });
    await page.goto('/');
    await shown(page, 'Overview');
    await tabTo(page, /^a Deliveries$/);
    await page.keyboard.press('Enter');
    await shown(page, 'Deliveries');
    for (const runId of [older, newer]) await rowOf(page, runId).getByText('failed').waitFor();
    receiver.status = 200;
    for (const key of ['j', 'j', 'x']) await page.keyboard.press(key);
    await page.getByText('1 selected').waitFor();
    expect(await rowOf(page, older).getByRole('checkbox').isChecked()).toBe(true);
    await tabTo(page, /^button Redeliver$/);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    if (!(await focused(page)).startsWith('button Redeliver')) await tabTo(page, /^button Redeliver/);
    await page.keyboard.press('Enter');
    await rowOf(page, older).getByText('delivered', { exact: true }).waitFor();
    await rowOf(page, newer).getByText('failed').waitFor();
  });

  it('opens a delivery with Enter, and leaves a question with Escape', async () => {
    const receiver = await scene.receiver(500);
    const runId = await scene.call(receiver.url);
    const page = await open({ baseURL: scene.origin });
    await page.goto(`/deliveries?host=${receiver.host}`);
    await shown(page, 'Deliveries');
    await rowOf(page, runId).getByText('failed').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await shown(page, 'Delivery');
    await tabTo(page, /^button Redeliver elsewhere/);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await focused(page)).toMatch(/^button Redeliver elsewhere/);
  });
});
