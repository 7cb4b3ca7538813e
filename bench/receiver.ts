/**
 * The receiver of the deliveries: answers 200 and checks each one, its signature and its body, as far as that
 * costs little beside what is measured.
 */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { onAsk } from './probe.ts';
import { answerOf, WEBHOOK_SECRET } from './workload.ts';

export interface Expectation {
  readonly deliveries: number;
  /** Bytes of the answer that each carries. */
  readonly size: number;
  readonly limitMs: number;
}

let expected: Expectation = { deliveries: 0, size: 0, limitMs: 0 };
const runIds = new Set<string>();
let arrived = Promise.withResolvers<void>();

onAsk('expect', (expectation: Expectation) => {
  expected = expectation;
  runIds.clear();
  arrived = Promise.withResolvers();
  arrived.promise.catch(() => {}); // told to whoever asks for `arrived`
});

/** Answers once every delivery has arrived, with their number; fails at the first wrong one. */
onAsk('arrived', async () => {
  const { deliveries, limitMs } = expected;
  const limit = setTimeout(() => {
    arrived.reject(new Error(`${runIds.size} of ${deliveries} deliveries arrived within ${limitMs} ms`));
  }, limitMs);
  await arrived.promise.finally(() => clearTimeout(limit));
  return runIds.size;
});

function take(headers: IncomingHttpHeaders, body: Buffer): void {
  const fault = faultOf(headers, body);
  if (fault !== undefined) arrived.reject(new Error(`a delivery ${fault}`));
  runIds.add(String(headers['x-request-id']));
  if (runIds.size === expected.deliveries) arrived.resolve();
  else if (runIds.size > expected.deliveries) arrived.reject(new Error('more deliveries than calls arrived'));
}

function faultOf(headers: IncomingHttpHeaders, body: Buffer): string | undefined {
  const runId = String(headers['x-request-id']);
  const digest = createHmac('sha256', WEBHOOK_SECRET)
    .update(`${runId}.${String(headers['x-service-webhook-timestamp'])}.`)
    .update(body)
    .digest('hex');
  if (headers['x-service-webhook-signature'] !== `v1,${digest}`) return 'is not signed as it should be';
  if (!body.includes(`"run_id":"${runId}"`)) return 'names another run';
  return body.includes(answerOf(expected.size)) ? undefined : 'does not carry the answer';
}

createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    take(req.headers, Buffer.concat(chunks));
    res.writeHead(200).end();
  });
}).listen(0, '127.0.0.1');
