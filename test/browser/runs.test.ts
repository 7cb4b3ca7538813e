/** Asynchronous calls in the dashboard: those that wait and those that run are seen, and cancelled. */
import { expect, it } from 'vitest';
import { describeInBrowser, useBrowser } from '../support/browser.ts';
import { button, rowOf, rows, shown } from './looking.ts';
import { useScene } from './scene.ts';

describeInBrowser('runs in the dashboard', () => {
  const open = useBrowser();
  const scene = useScene();

  it('shows what is queued and running, and cancels it', async () => {
    const receiver = await scene.receiver();
    const running = await scene.call(receiver.url, { app: 'held', async: true });
    const queued = await scene.call(receiver.url, { app: 'held', async: true });

    const page = await open({ baseURL: scene.origin });
    await page.goto('/runs');
    await shown(page, 'Runs');
    await rowOf(page, running).getByText('running', { exact: true }).waitFor();
    await rowOf(page, queued).getByText('queued', { exact: true }).waitFor();

    await page.goto('/runs?state=queued');
    await shown(page, 'Runs');
    await expect.poll(() => rows(page).count()).toBe(1);
    await button(rowOf(page, queued), /^Cancel/).click();
    await button(page.getByRole('dialog'), 'Cancel the run').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' }); // once the service has answered
    await page.goto(`/runs/${queued}`);
    await shown(page, 'Run');
    await page.getByRole('main').getByText('cancelled', { exact: true }).first().waitFor();

    await page.goto(`/runs/${running}`);
    await shown(page, 'Run');
    await button(page, 'Cancel').click();
    await page.getByRole('main').getByText('cancelled', { exact: true }).first().waitFor();
    await expect.poll(() => button(page, 'Cancel').count()).toBe(0);
  });

  it('leads from a run to its delivery and back', async () => {
    const receiver = await scene.receiver();
    const runId = await scene.call(receiver.url, { async: true });
    const page = await open({ baseURL: scene.origin });
    await page.goto(`/runs/${runId}`);
    await shown(page, 'Run');
    await page.getByRole('main').getByText('succeeded', { exact: true }).first().waitFor();
    await page.getByText('12345678901234567890').first().waitFor();
    await page.locator(`main a[href^="/deliveries/${runId}"]`).first().click();
    await shown(page, 'Delivery');
    await page.locator(`main a[href^="/runs/${runId}"]`).first().click();
    await shown(page, 'Run');
    expect(new URL(page.url()).pathname).toBe(`/runs/${runId}`);
  });
});
