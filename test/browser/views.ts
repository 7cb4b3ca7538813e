/**
 * All places of the dashboard, as a service with a past shows them.
 */
import type { Page } from 'playwright-core';
import { button, rows, shown } from './looking.ts';
import type { Past } from './past.ts';

export interface View {
  readonly name: string;
  readonly path: string;
  readonly heading: string;
  /** What it says besides. */
  readonly says?: string;
  /** What is done to it before it is looked at. */
  readonly prepare?: (page: Page) => Promise<void>;
}

export function viewsOf(past: Past): readonly View[] {
  return [
    { name: 'overview', path: '/', heading: 'Overview' },
    { name: 'overview of a week', path: '/?window=7d', heading: 'Overview' },
    { name: 'deliveries', path: `/deliveries?since=${past.minutesBefore(2)}`, heading: 'Deliveries' },
    {
      name: 'deliveries that are not there',
      path: '/deliveries?host=nobody.example',
      heading: 'Deliveries',
      says: 'No delivery matches',
    },
    {
      name: 'deliveries that are selected',
      path: `/deliveries?state=failed&since=${past.minutesBefore(3)}`,
      heading: 'Deliveries',
      prepare: select,
    },
    { name: 'a filter that is refused', path: '/deliveries?status=many', heading: 'Deliveries' },
    {
      name: 'a delivery that failed',
      path: `/deliveries/${past.failed}`,
      heading: 'Delivery',
      says: 'connection_refused',
    },
    {
      name: 'a delivery that waits',
      path: `/deliveries/${past.pending}`,
      heading: 'Delivery',
      says: 'pending',
    },
    { name: 'a question', path: `/deliveries/${past.failed}`, heading: 'Delivery', prepare: ask },
    { name: 'no delivery', path: '/deliveries/0192f1d2-1a2b-7c3d-8e4f-5a6b7c8d9e0f', heading: 'Delivery' },
    { name: 'runs', path: '/runs', heading: 'Runs' },
    { name: 'a run', path: `/runs/${past.run}`, heading: 'Run', says: 'succeeded' },
    { name: 'apps', path: '/apps', heading: 'Apps' },
    { name: 'health', path: '/health', heading: 'Health' },
    { name: 'nowhere', path: '/deliveries/a/b', heading: 'Nothing is here' },
  ];
}

export async function visit(page: Page, { path, heading, says, prepare }: View): Promise<void> {
  await page.goto(path);
  await shown(page, heading);
  if (says !== undefined) await page.getByRole('main').getByText(says).first().waitFor();
  await prepare?.(page);
}

async function select(page: Page): Promise<void> {
  for (const index of [0, 1]) await rows(page).nth(index).getByRole('checkbox').check();
  await page.getByText('2 selected').waitFor();
}

async function ask(page: Page): Promise<void> {
  await button(page, 'Redeliver elsewhere…').click();
  await button(page.getByRole('dialog'), 'Redeliver').hover();
}
