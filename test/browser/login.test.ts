/** Who may look: the page asks for the admin token, and no secret ever reaches it. */
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { describeInBrowser, useBrowser } from '../support/browser.ts';
import { shown } from './looking.ts';
import { SECRET, useScene } from './scene.ts';

const ADMIN_TOKEN = 'the-admin-token-of-this-test';

describeInBrowser('a service with an admin token', () => {
  const open = useBrowser();
  const scene = useScene({ adminToken: ADMIN_TOKEN });

  async function logIn(page: Page, token = ADMIN_TOKEN): Promise<void> {
    await page.getByLabel('Admin token').fill(token);
    await page.getByRole('button', { name: 'Log in' }).click();
  }

  it('is shown to those who know it, until they log out', async () => {
    const page = await open({ baseURL: scene.origin });
    await page.goto('/deliveries');
    await logIn(page, 'a-guess');
    await page.getByRole('alert').getByText('That is not the admin token.').waitFor();
    expect(await page.context().cookies()).toEqual([]);

    await logIn(page);
    await shown(page, 'Deliveries');
    const cookies = await page.context().cookies();
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: 'Strict' }]);
    expect(cookies[0]!.value).not.toContain(ADMIN_TOKEN);
    await page.reload();
    await shown(page, 'Deliveries');

    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Admin token').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.reload();
    await page.getByLabel('Admin token').waitFor();
  });

  it('asks again when the session has ended', async () => {
    const page = await open({ baseURL: scene.origin });
    await page.goto('/deliveries?live=off'); // which reads nothing of itself
    await logIn(page);
    await shown(page, 'Deliveries');
    await page.context().clearCookies();
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Runs' }).click();
    await page.getByLabel('Admin token').waitFor();
    expect(await page.getByRole('heading', { level: 1, name: 'Runs' }).count()).toBe(0);
  });

  it('sends the page no secret', async () => {
    const receiver = await scene.receiver(500);
    const target = receiver.url.replace('//', '//user:passw0rd@');
    const runId = await scene.call(target);
    await expect.poll(() => receiver.requests.length).toBe(1);
    const secrets = {
      adminToken: ADMIN_TOKEN,
      projectToken: scene.service.token,
      webhookSecret: SECRET,
      signature: String(receiver.requests[0]!.headers['x-service-webhook-signature']).slice('v1,'.length),
      password: 'passw0rd',
      basic: Buffer.from('user:passw0rd').toString('base64'),
    };

    const page = await open({ baseURL: scene.origin });
    const bodies = bodiesOf(page);
    await page.goto('/');
    await logIn(page);
    await shown(page, 'Overview');
    for (const [path, heading] of VIEWS) {
      await page.goto(path.replace('{run_id}', runId));
      await shown(page, heading);
      await Promise.all(bodies); // they are gone with the next page
    }
    bodies.push(page.evaluate<string>(EVENT));
    await page.getByText('the stream is open').waitFor();
    await scene.call(target);

    const seen = (await Promise.all(bodies)).join('\n');
    expect(seen.includes(`"run_id":"${runId}"`)).toBe(true);
    expect(Object.entries(secrets).filter(([, secret]) => seen.includes(secret))).toEqual([]);
    const kept = await page.evaluate('[{ ...localStorage }, { ...sessionStorage }, document.cookie]');
    expect(kept).toEqual([{}, {}, '']);
  });
});

/** What the page is answered from now on. A stream has no end to wait for, and is left out. */
function bodiesOf(page: Page): Promise<string>[] {
  const bodies: Promise<string>[] = [];
  page.on('response', response => {
    const type = response.headers()['content-type'] ?? '';
    if (!type.startsWith('text/event-stream')) bodies.push(response.text().catch(() => ''));
  });
  return bodies;
}

/** What the next event of the stream says. */
const EVENT = `new Promise(resolve => {
  const stream = new EventSource('/api/v1/deliveries/stream');
  stream.onopen = () => document.body.append('the stream is open');
  stream.addEventListener('delivery', ({ data }) => resolve(data));
})`;

const VIEWS = [
  ['/', 'Overview'],
  ['/deliveries', 'Deliveries'],
  ['/deliveries/{run_id}', 'Delivery'],
  ['/runs', 'Runs'],
  ['/apps', 'Apps'],
  ['/health', 'Health'],
] as const;
