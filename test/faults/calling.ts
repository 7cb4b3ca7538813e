/**
 * A process that calls: a few keep-alive connections, each calling without end, with answers of 100 bytes to
 * 300 KiB of both runtimes. It tells its parent of every answer that came whole, and of those that did not:
 * it goes on with the next call.
 */
import { createHash } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Failure, Orders, WholeAnswer } from '../support/load.ts';

const LANES = Number(process.argv[2]);
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

async function call({ port, token, target }: Orders): Promise<WholeAnswer> {
  calls += 1;
  const app = calls % 2 === 0 ? 'custom' : 'cortex';
  const body = JSON.stringify({ call: calls, size: answerSize() });
  const query = target === undefined ? '' : `?webhookEndpoint=${encodeURIComponent(target)}`;
  const path = `/v4/p-test/${app}/run${query}`;
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
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  if (!answer.complete) throw new Error('the answer broke off');
  const whole = Buffer.concat(chunks);
  return {
    runId: String(answer.headers['x-request-id']),
    app,
    status: answer.statusCode!,
    ...codeIn(answer, whole),
    digest: createHash('sha256').update(whole).digest('hex'),
    at: Date.now(),
  };
}

function codeIn(answer: IncomingMessage, body: Buffer): { code?: string } {
  if (answer.headers['content-type'] !== 'application/problem+json') return {};
  return { code: (JSON.parse(body.toString()) as { code: string }).code };
}

const failureOf = (error: unknown): Failure => ({ failed: String(error) });

async function lane(): Promise<void> {
  for (;;) {
    await aimed.promise;
    if (stopping) return;
    process.send!(await call(orders!).catch(failureOf));
    await setTimeout(between(0, PAUSE_MS));
  }
}

await Promise.all(Array.from({ length: LANES }, lane));
agent.destroy();
process.disconnect!();
