/**
 * How the pages of the dashboard are looked at: by what they say, as people find it.
 */
import { expect } from 'vitest';
import type { BrowserContext, Locator, Page } from 'playwright-core';

/** The row of a list that leads to a run. */
export function rowOf(page: Page, runId: string): Locator {
  return page.getByRole('row').filter({ has: page.locator(`a[href*="${runId}"]`) });
}

export function linkTo(page: Page, runId: string): Locator {
  return page.locator(`main a[href*="${runId}"]`).first();
}

export function rows(page: Page): Locator {
  return page.locator('main tbody').getByRole('row');
}

export function button(within: Page | Locator, name: string | RegExp): Locator {
  return within.getByRole('button', typeof name === 'string' ? { name, exact: true } : { name });
}

export function filters(page: Page): Locator {
  return page.getByRole('form', { name: 'Filters' });
}

/** The view has come with all that it reads. */
export async function shown(page: Page, heading: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  await page.locator('[aria-busy=true], .trouble').first().waitFor({ state: 'detached' });
}

/** The list is told of every change from now on. Before, one that it missed would have it read again. */
export async function followed(list: Page): Promise<void> {
  await list.getByText('connected', { exact: true }).waitFor();
}

/** As `followed`, for the page of a delivery, which says nothing of it: to be called before that is opened. */
export async function deliveryFollowed(context: BrowserContext): Promise<void> {
  await context.waitForEvent('response', response => response.url().includes('/deliveries/stream?since='));
}

/** Throws where the page was loaded again after this was asked for the first time. */
export async function markPage(page: Page): Promise<() => Promise<void>> {
  await page.evaluate('globalThis.marked = true');
  return async () => expect(await page.evaluate('globalThis.marked')).toBe(true);
}

/** The filters as the address has them. */
export function parametersOf(page: Page): Record<string, string> {
  return Object.fromEntries(new URL(page.url()).searchParams);
}
