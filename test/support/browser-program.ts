/**
 * The browser that the dashboard is looked at with: Debian's Chromium, or the one that AFTERWORD_TEST_CHROMIUM
 * names.
 */
import { accessSync, constants } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

export const CHROMIUM = process.env['AFTERWORD_TEST_CHROMIUM'] ?? '/usr/bin/chromium';

export function hasChromium(): boolean {
  try {
    accessSync(CHROMIUM, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The first start on a machine reads some hundred megabytes from its disk. */
const LAUNCH_MS = 120_000;

export function launchChromium(): Promise<Browser> {
  // Its sandbox is not for root.
  return chromium.launch({
    executablePath: CHROMIUM,
    chromiumSandbox: process.getuid?.() !== 0,
    timeout: LAUNCH_MS,
  });
}
