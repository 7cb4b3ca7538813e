/**
 * Callers of a runs app: several at once, who call asynchronously until as many runs are accepted as are asked
 * for. A call that breaks off, or that nobody takes, was not accepted: another is made in its place.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { readText } from '../support/app.ts';
import { PROJECT } from '../support/service.ts';
import { type Order, RUNTIMES, type Runtime } from './runs-app.ts';

export const WEBHOOK_SECRET = 'the secret of the load';

export interface AcceptedRun {
  readonly runId: string;
  readonly app: Runtime;
  readonly call: number;
  /** Of its request. */
  readonly bytes: number;
  /** Whether it asked for a delivery. */
  readonly webhook: boolean;
}

export interface RunCallers {
  readonly accepted: readonly AcceptedRun[];
  /** Whole answers that were no 202. */
  readonly refused: readonly string[];
  /** Where the service listens; undefined while there is none. */
  aim(port: number | undefined): void;
  /** Resolves when this many more are accepted. */
  accept(count: number): Promise<void>;
}

export interface RunCallersOptions {
  readonly token: string;
  /** Of the webhooks. */
  readonly target: string;
}

const LANES = 6;
/** Between two calls of a lane, at most. */
const PAUSE_MS = 30;
/** How long the app takes, at most. */
const LONGEST_MS = 300;
/** So many of a hundred ask for a webhook, and so many have a request too long for memory, or an answer. */
const WITH_WEBHOOK = 70;
const LONG_REQUEST = 15;
const LONG_ANSWER = 10;

const between = (least: number, most: number): number => least + Math.floor(Math.random() * (most - least));
const happens = (ofHundred: number): boolean => Math.random() * 100 < ofHundred;
const sizeOf = (long: boolean): number => (long ? between(70_000, 250_000) : between(0, 2_000));

let calls = 0;

export function createRunCallers({ token, target }: RunCallersOptions): RunCallers {
  const accepted: AcceptedRun[] = [];
  const refused: string[] = [];
  let port: number | undefined;
  let aimed = Promise.withResolvers<void>();
  let agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());

  async function call(): Promise<AcceptedRun | undefined> {
    calls += 1;
    const fill = 'x'.repeat(sizeOf(happens(LONG_REQUEST)));
    const order: Order = {
      call: calls,
      ms: between(0, LONGEST_MS),
      size: sizeOf(happens(LONG_ANSWER)),
      fill,
    };
    const [app, webhook] = [RUNTIMES[calls % RUNTIMES.length]!, happens(WITH_WEBHOOK)];
    const body = JSON.stringify(order);
    const query = webhook ? `&webhookEndpoint=${encodeURIComponent(target)}` : '';
    const path = `/v4/${PROJECT}/${app}/run?async=true${query}`;
    const headers = {
      authorization: `Bearer ${token}`,
      'content-length': body.length,
      ...(webhook && { 'x-webhook-secret': WEBHOOK_SECRET }),
    };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ port, host: '127.0.0.1', method: 'POST', path, headers, agent }, resolve)
        .on('error', reject)
        .end(body);
    });
    const text = await readText(answer);
    if (answer.statusCode !== 202) {
      refused.push(text);
      return undefined;
    }
    const { run_id: runId } = JSON.parse(text) as { run_id: string };
    return { runId, app, call: order.call, bytes: body.length, webhook };
  }

  return {
    accepted,
    refused,
    aim(to) {
      if (to !== undefined) aimed.resolve();
      else if (port !== undefined) aimed = Promise.withResolvers();
      port = to;
      agent.destroy();
      agent = new Agent({ keepAlive: true });
    },
    async accept(count) {
      let missing = count;
      const lane = async (): Promise<void> => {
        while (missing > 0) {
          missing -= 1;
          await aimed.promise;
          const run = await call().catch(() => undefined); // the service was killed meanwhile
          if (run === undefined) missing += 1;
          else accepted.push(run);
          await setTimeout(Math.random() * PAUSE_MS);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
    },
  };
}
