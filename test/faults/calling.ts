/**
 * A process that calls: a few keep-alive connections, each calling without end, with answers of 100 bytes to
 * 300 KiB of both runtimes. It tells its parent of every answer that came whole. Connections that break, or
 * that nobody takes, are what it expects: it goes on with the next call.
 */
import { createHash } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Orders, WholeAnswer } from '../support/load.ts';

const LANES = 12;
/** Between two calls of a lane, at most. */
const PAUSE_MS = 40;

let orders: Orders | undefined;
let aimed = Promise.withResolvers<void>();
let agent = new Agent({ keepAlive: true });
let stopping = false;
let calls = 0;

process.on('message', (message: Orders | 'stop') => {
  if (message === 'stop') stopping = true;
  else take(message);
  aimed.resolve();
});

function take(message: Orders): void {
  orders = message;
  agent.destroy();
  agent = new Agent({ keepAlive: true });
  if (message.port === undefined) aimed = Promise.withResolvers();
}

const between = (least: number, most: number): number => least + Math.floor(Math.random() * (most - least));

/** Mostly small; now and then large enough for a file of its own. */
function answerSize(): number {
  const chance = Math.random();
  if (chance < 0.9) return between(100, 2_000);
  return chance < 0.97 ? between(2_000, 100_000) : between(130_000, 300_000);
}

async function call({ port, token, target }: Orders): Promise<WholeAnswer | undefined> {
  calls += 1;
  const app = calls % 2 === 0 ? 'custom' : 'cortex';
  const body = JSON.stringify({ call: calls, size: answerSize() });
  const path = `/v4/p-test/${app}/run?webhookEndpoint=${encodeURIComponent(target)}`;
  const headers = {
    authorization: `Bearer ${token}`,
    'content-length': body.length,
    'x-webhook-secret': 'the secret of the load',
  };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ port, host: '127.0.0.1', method: 'POST', path, headers, agent }, resolve)
      .on('error', reject)
      .end(body);
  });
  const hash = createHash('sha256');
  for await (const chunk of answer) hash.update(chunk as Buffer);
  if (!answer.complete) return undefined;
  const runId = String(answer.headers['x-request-id']);
  return { runId, app, status: answer.statusCode!, digest: hash.digest('hex') };
}

async function lane(): Promise<void> {
  for (;;) {
    await aimed.promise;
    if (stopping) return;
    const answer = await call(orders!).catch(() => undefined);
    if (answer !== undefined) process.send!(answer);
    await setTimeout(between(0, PAUSE_MS));
  }
}

await Promise.all(Array.from({ length: LANES }, lane));
agent.destroy();
process.disconnect!();
