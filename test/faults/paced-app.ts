/**
 * An app whose calls take as long as the test says at the moment, or are held until it says so. It keeps account
 * of the order in which they began and of how many there were at once. Beside it is another app, which answers
 * at once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { openApp, readText } from '../support/app.ts';
import type { Settings } from '../support/process.ts';

export interface PacedApp {
  readonly apps: NonNullable<Settings['apps']>;
  /** The numbers that the calls carry, in the order in which they came. */
  readonly begun: readonly number[];
  /** How many have been answered. */
  readonly done: number;
  /** The most that were there at once. */
  readonly peak: number;
  /** From now on each call takes up to `most` milliseconds, and `onDone` is told of its end. */
  run(most: number, onDone?: () => void): void;
  /** From now on none is answered. */
  hold(): void;
}

export async function openPacedApp(concurrency: number): Promise<PacedApp> {
  const begun: number[] = [];
  let [open, peak, done] = [0, 0, 0];
  let pace = { most: 0, onDone: (): void => {} };
  let running = Promise.withResolvers<void>();

  async function work(req: IncomingMessage, res: ServerResponse): Promise<void> {
    open += 1;
    peak = Math.max(peak, open);
    const { number } = JSON.parse(await readText(req)) as { number: number };
    begun.push(number);
    await running.promise;
    await setTimeout(Math.random() * pace.most);
    await running.promise; // it may have been held meanwhile
    // Before the answer is out: as soon as it is, the next one may come.
    open -= 1;
    done += 1;
    res.setHeader('Content-Type', 'application/json').end('{}');
    pace.onDone();
  }

  const app = await openApp((req, res) => {
    if (req.url!.startsWith('/other/')) req.resume().on('end', () => res.end());
    else work(req, res).catch(() => res.destroy());
  });
  onTestFinished(() => app.close());
  const at = (name: string) => ({ runtime: 'custom', url: `${app.url}/${name}`, concurrency }) as const;
  return {
    apps: { paced: at('paced'), other: at('other') },
    begun,
    get done() {
      return done;
    },
    get peak() {
      return peak;
    },
    run(most, onDone = () => {}) {
      pace = { most, onDone };
      running.resolve();
    },
    hold() {
      pace = { most: 0, onDone: () => {} };
      running = Promise.withResolvers();
    },
  };
}
