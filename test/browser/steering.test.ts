/** Finding deliveries in the dashboard, and acting on them. */
import { expect, it } from 'vitest';
import { describeInBrowser, useBrowser } from '../support/browser.ts';
import {
  button,
  deliveryFollowed,
  filters,
  followed,
  linkTo,
  parametersOf,
  rowOf,
  rows,
  shown,
} from './looking.ts';
import { mend } from './mending.ts';
import { pastOf } from './past.ts';
import { type MoodyReceiver, useScene } from './scene.ts';

describeInBrowser('deliveries in the dashboard', () => {
  const open = useBrowser();
  const past = pastOf({ deliveries: 20_000, hours: 48, runs: 200 });
  const scene = useScene(past);

  const callsTo = (receiver: MoodyReceiver, count: number) =>
    Promise.all(Array.from({ length: count }, () => scene.call(receiver.url)));
  const listOf = async (parameters: Record<string, string>) => {
    const page = await open({ baseURL: scene.origin });
    await page.goto(`/deliveries?${new URLSearchParams(parameters)}`);
    await shown(page, 'Deliveries');
    await followed(page);
    return page;
  };
  const pageOf = async (runId: string) => {
    const page = await open({ baseURL: scene.origin });
    await Promise.all([deliveryFollowed(page.context()), page.goto(`/deliveries/${runId}`)]);
    await shown(page, 'Delivery');
    return page;
  };

  it('finds one that failed, tells why, sends it again and sees it succeed', async () => {
    expect(await mend(scene, open)).toEqual(['sent', 'sent']);
  });

  it('sends one elsewhere, and says why it will not', async () => {
    const [receiver, elsewhere] = [await scene.receiver(500), await scene.receiver()];
    const page = await pageOf(await scene.call(receiver.url));
    await button(page, 'Redeliver elsewhere…').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Target').fill('http://192.168.0.1/');
    await button(dialog, /^Redeliver/).click();
    await dialog.getByRole('alert').getByText('forbidden address').waitFor();
    await dialog.getByLabel('Target').fill(elsewhere.url);
    await button(dialog, /^Redeliver/).click();
    await page.getByRole('main').getByText('delivered', { exact: true }).first().waitFor();
    await page.getByRole('main').getByText(elsewhere.host).first().waitFor();
    expect(elsewhere.requests).toHaveLength(1);
  });

  it('counts down to the next attempt, and cancels', async () => {
    // No pause is as long as this may take: the second attempt is not answered, and the page's clock put back.
    const unanswered = Promise.withResolvers<number>();
    const receiver = await scene.receiver(number => (number === 2 ? unanswered.promise : 404));
    const page = await pageOf(await scene.call(receiver.url));
    await expect.poll(() => receiver.requests.length).toBe(2);
    await page.evaluate('{ const { now } = Date; Date.now = () => now() - 600_000; }');
    const next = page.getByText(/Next attempt in \d{3} s/);
    const before = await next.innerText();
    await expect.poll(() => next.innerText()).not.toBe(before);
    await button(page, 'Cancel').click();
    await page.getByRole('main').getByText('cancelled', { exact: true }).first().waitFor();
    await expect.poll(() => button(page, 'Cancel').count()).toBe(0);
    expect(receiver.requests).toHaveLength(2);
  });

  it('sends those again that were selected', async () => {
    const receiver = await scene.receiver(500);
    const runIds = await callsTo(receiver, 4);
    const page = await listOf({ state: 'failed', host: receiver.host });
    await expect.poll(() => rows(page).count()).toBe(4);
    receiver.status = 200;
    for (const runId of runIds.slice(1)) await rowOf(page, runId).getByRole('checkbox').check();
    await page.getByText('3 selected').waitFor();
    await button(page, 'Redeliver').click();
    await button(page.getByRole('dialog'), /^Redeliver/).click();
    for (const runId of runIds.slice(1))
      await rowOf(page, runId).getByText('delivered', { exact: true }).waitFor();
    await rowOf(page, runIds[0]!).getByText('failed').waitFor();
    expect(receiver.requests).toHaveLength(4 + 3);
  });

  it('sends all again that match, and says how many', async () => {
    const receiver = await scene.receiver(422);
    const runIds = await callsTo(receiver, 5);
    const page = await listOf({ state: 'failed', status: '422', host: receiver.host });
    await expect.poll(() => rows(page).count()).toBe(5);
    receiver.status = 204;
    await button(page, /^Redeliver all that match/).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/\b5\b/).first().waitFor();
    await button(dialog, /^Redeliver/).click();
    for (const runId of runIds) await rowOf(page, runId).getByText('delivered', { exact: true }).waitFor();
    expect(receiver.requests).toHaveLength(5 + 5);
  });

  it('goes to a run id that is pasted', async () => {
    const page = await listOf({});
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.evaluate(`navigator.clipboard.writeText('what became of ${past.failed}?')`);
    await page.getByLabel('Go to a run id').focus();
    await page.keyboard.press('ControlOrMeta+v');
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/deliveries/${past.failed}`);
  });

  it('has its filters in the address: a reload, the way back and a link show the same', async () => {
    const page = await listOf({});
    const form = filters(page);
    await form.getByLabel('State').selectOption('failed');
    await form.getByLabel('Reason').selectOption('rejected');
    await form.getByLabel('Status').fill('5xx');
    await form.getByLabel('Status').press('Enter');
    const chosen = { state: 'failed', reason: 'rejected', status: '5xx' };
    await expect.poll(() => parametersOf(page)).toEqual(chosen);
    const same = async (other = page) => {
      await shown(other, 'Deliveries');
      expect(parametersOf(other)).toEqual(chosen);
      expect(await filters(other).getByLabel('State').inputValue()).toBe('failed');
      expect(await filters(other).getByLabel('Status').inputValue()).toBe('5xx');
      await expect
        .poll(async () => (await rows(other).allInnerTexts()).filter(text => !text.includes('rejected')))
        .toEqual([]);
      expect(await rows(other).count()).toBeGreaterThan(5);
    };
    await same();
    await page.reload();
    await same();
    await rows(page).nth(2).getByRole('link').first().click();
    await shown(page, 'Delivery');
    await page.goBack();
    await same();
    await same(await listOf(chosen));
  });

  it('leaves alone what is being typed when a list comes in', async () => {
    const page = await listOf({});
    const typed = Promise.withResolvers<void>();
    await page.route('**/api/v1/deliveries?**', async route => {
      await typed.promise;
      await route.continue();
    });
    await filters(page).getByLabel('State').selectOption('cancelled');
    await filters(page).getByLabel('App').pressSequentially('sco');
    typed.resolve();
    await expect.poll(() => rows(page).filter({ hasNotText: 'cancelled' }).count()).toBe(0);
    await filters(page).getByLabel('App').pressSequentially('re');
    await filters(page).getByLabel('App').press('Enter');
    await expect.poll(() => parametersOf(page)).toEqual({ state: 'cancelled', app: 'score' });
  });

  it('turns older pages', async () => {
    const page = await listOf({});
    const before = await rows(page).count();
    await button(page, 'Older').click();
    await expect.poll(() => rows(page).count()).toBeGreaterThan(before);
  });

  it('shows what is new by itself, unless Live is off', async () => {
    const receiver = await scene.receiver();
    const [live, still] = [await listOf({ host: receiver.host }), await listOf({ host: receiver.host })];
    await still.getByRole('checkbox', { name: 'Live' }).uncheck();
    await expect.poll(() => parametersOf(still)).toEqual({ host: receiver.host, live: 'off' });
    const runId = await scene.call(receiver.url);
    await rowOf(live, runId).getByText('delivered', { exact: true }).waitFor();
    expect(await linkTo(still, runId).count()).toBe(0);
    await still.getByRole('checkbox', { name: 'Live' }).check();
    await rowOf(still, runId).getByText('delivered', { exact: true }).waitFor();
  });
});
