/**
 * Pages in a real browser, one browser for each process of tests. Whatever a test looks at, a page may not
 * complain: an error in its script, a breach of its content security policy or a request to another origin fails
 * the test. Of a test that failed, what was seen is kept.
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished } from 'vitest';
import { launchChromium } from './browser-program.ts';

export const DESKTOP = { width: 1280, height: 800 } as const;
export const PHONE = { width: 390, height: 844 } as const;

/** How long something may take to be seen: the tests' machine may be busy with others. */
const PATIENCE_MS = 10_000;

export const describeInBrowser = inject('browser') ? describe : describe.skip;

export interface PageOptions extends BrowserContextOptions {
  /** Where the page is from. */
  readonly baseURL: string;
  /** Scripts that run before those of the page, whatever its policy. */
  readonly scripts?: readonly string[];
  /** A trace costs time, which a measurement does not have. */
  readonly traced?: boolean;
}

export type OpenPage = (options: PageOptions) => Promise<Page>;

/** To be called where hooks are. Pages are closed when their test is over. */
export function useBrowser(): OpenPage {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  return async options => {
    const { scripts = [], traced = true, ...rest } = options;
    const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce', ...rest });
    context.setDefaultTimeout(PATIENCE_MS);
    const complaints = complaintsOf(context, new URL(options.baseURL).origin);
    for (const content of [REPORT_VIOLATIONS, ...scripts]) await context.addInitScript({ content });
    if (traced) await context.tracing.start({ snapshots: true });
    onTestFinished(async ({ task }) => {
      if (task.result?.state === 'fail') await keep(context, task.name, traced);
      await context.close();
      expect(complaints).toEqual([]);
    });
    return context.newPage();
  };
}

const REPORT_VIOLATIONS = `
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
    console.error('breach of the policy', violatedDirective, blockedURI));`;

/** The browser's own word on an answer of 400 and above, which a test may well ask for. */
const NOT_OK = /^Failed to load resource: the server responded with a status of/;

function complaintsOf(context: BrowserContext, origin: string): readonly string[] {
  const complaints: string[] = [];
  context.on('weberror', error => complaints.push(error.error().message));
  context.on('console', message => {
    if (message.type() === 'error' && !NOT_OK.test(message.text())) complaints.push(message.text());
  });
  context.on('request', request => {
    if (new URL(request.url()).origin !== origin) complaints.push(`a request to ${request.url()}`);
  });
  return complaints;
}

async function keep(context: BrowserContext, name: string, traced: boolean): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'afterword-browser-'));
  for (const [number, page] of context.pages().entries())
    await page.screenshot({ path: join(folder, `page-${number + 1}.png`), fullPage: true }).catch(() => {});
  if (traced) await context.tracing.stop({ path: join(folder, 'trace.zip') });
  console.error(`What the browser showed when “${name}” failed is in ${folder}`);
}
