/**
 * An app whose answers are as long as its callers ask, under both runtimes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { openApp, readText } from '../support/app.ts';
import type { Settings } from '../support/process.ts';

/** Half of the time without telling how many bytes there will be. */
async function answerAsAsked(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { call, size } = JSON.parse(await readText(req)) as { call: number; size: number };
  const answer = JSON.stringify({ call, fill: 'x'.repeat(size) });
  res.setHeader('Content-Type', 'application/json');
  if (call % 4 < 2) res.setHeader('Content-Length', answer.length);
  res.write(answer.slice(0, 50));
  res.end(answer.slice(50));
}

export async function openSizedApp(): Promise<NonNullable<Settings['apps']>> {
  const app = await openApp(
    (req, res) => {
      answerAsAsked(req, res).catch(() => res.destroy()); // the service was killed while it asked
    },
    { keepAliveTimeout: 60_000 }, // it gives up no connection to a node that stands still for a while
  );
  onTestFinished(() => app.close());
  return { custom: { runtime: 'custom', url: app.url }, cortex: { runtime: 'cortex', url: app.url } };
}
