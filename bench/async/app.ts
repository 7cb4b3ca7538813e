/**
 * The app of the bench of asynchronous calls. What comes to `/held` is never answered, so that a queue before it
 * stays as deep as it is. Everything else is answered at once, and must come once for each call.
 */
import { createServer, type IncomingMessage } from 'node:http';
import { onAsk } from '../probe.ts';
import { answerOf, REQUEST_BYTES } from '../workload.ts';
import { HELD } from './calls.ts';

export interface Expectation {
  readonly runs: number;
  readonly limitMs: number;
}

const ANSWER = answerOf(1024);

let expected: Expectation = { runs: 0, limitMs: 0 };
const runIds = new Set<string>();
let arrived = Promise.withResolvers<void>();

onAsk('expect', (expectation: Expectation) => {
  expected = expectation;
  runIds.clear();
  arrived = Promise.withResolvers();
  arrived.promise.catch(() => {}); // told to whoever asks for `arrived`
});

/** Answers once every run has come, with their number; fails at the first wrong one. */
onAsk('arrived', async () => {
  const { runs, limitMs } = expected;
  const limit = setTimeout(() => {
    arrived.reject(new Error(`${runIds.size} of ${runs} runs came within ${limitMs} ms`));
  }, limitMs);
  await arrived.promise.finally(() => clearTimeout(limit));
  return runIds.size;
});

function take({ headers }: IncomingMessage, bytes: number): void {
  const runId = String(headers['x-request-id']);
  if (bytes !== REQUEST_BYTES) arrived.reject(new Error(`a run came with ${bytes} bytes`));
  if (runIds.has(runId)) arrived.reject(new Error('a run came twice'));
  runIds.add(runId);
  if (runIds.size === expected.runs) arrived.resolve();
  else if (runIds.size > expected.runs) arrived.reject(new Error('more runs than calls came'));
}

createServer((req, res) => {
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  req.on('end', () => {
    if (req.url!.startsWith(`/${HELD}/`)) return;
    take(req, bytes);
    res.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(ANSWER.length)]);
    res.end(ANSWER);
  });
}).listen(0, '127.0.0.1');
