/**
 * What the dashboard is for: a delivery has failed, is found, read, sent again, and seen to succeed. The same
 * whatever else there is in the store.
 */
import { expect } from 'vitest';
import type { OpenPage } from '../support/browser.ts';
import {
  button,
  deliveryFollowed,
  filters,
  followed,
  linkTo,
  markPage,
  parametersOf,
  rowOf,
  rows,
  shown,
} from './looking.ts';
import type { Scene } from './scene.ts';

export async function mend(scene: Scene, open: OpenPage): Promise<readonly string[]> {
  const receiver = await scene.receiver(500);
  const runId = await scene.call(receiver.url);

  const list = await open({ baseURL: scene.origin });
  await list.goto('/deliveries');
  await shown(list, 'Deliveries');
  await filters(list).getByLabel('State').selectOption('failed');
  await filters(list).getByLabel('Host').fill(receiver.host);
  await filters(list).getByLabel('Host').press('Enter');
  await rowOf(list, runId).getByText('failed').waitFor();
  await expect.poll(() => rows(list).count()).toBe(1);
  expect(parametersOf(list)).toEqual({ state: 'failed', host: receiver.host });
  await followed(list);

  const [detail] = await Promise.all([
    list.context().waitForEvent('page'),
    deliveryFollowed(list.context()),
    linkTo(list, runId).click({ modifiers: ['ControlOrMeta'] }),
  ]);
  await shown(detail, 'Delivery');
  const said = await detail.getByRole('main').innerText();
  for (const text of [runId, 'failed', 'rejected', '500', receiver.host]) expect(said).toContain(text);

  const unmoved = await Promise.all([markPage(list), markPage(detail)]);
  receiver.status = 200;
  await button(detail, 'Redeliver').click();
  await detail.getByRole('main').getByText('delivered', { exact: true }).first().waitFor();
  await detail.getByRole('main').getByText('manual').first().waitFor();
  expect(await detail.getByRole('region', { name: 'Request', exact: true }).innerText()).toContain(
    '"run_time_ms"',
  );
  await rowOf(list, runId).getByText('delivered', { exact: true }).waitFor();
  for (const isUnmoved of unmoved) await isUnmoved();
  return receiver.requests.map(({ headers }) =>
    `${headers['x-request-id']}` === runId ? 'sent' : 'another',
  );
}
