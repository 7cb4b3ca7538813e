/**
 * A collector of traces: takes OTLP over HTTP in protobuf and counts the spans in it, which is all that it
 * reads. The numbers of the fields are those of opentelemetry-proto.
 */
import { createServer } from 'node:http';
import { onAsk } from '../probe.ts';
import { spansIn } from './otlp-count.ts';

export interface SpanExpectation {
  readonly spans: number;
  readonly limitMs: number;
}

let expected: SpanExpectation = { spans: 0, limitMs: 0 };
let count = 0;
let arrived = Promise.withResolvers<void>();

onAsk('expect', (expectation: SpanExpectation) => {
  expected = expectation;
  count = 0;
  arrived = Promise.withResolvers();
  arrived.promise.catch(() => {}); // told to whoever asks for `arrived`
});

/** Answers once every span has arrived; fails where there are more. */
onAsk('arrived', async () => {
  const { spans, limitMs } = expected;
  const limit = setTimeout(() => {
    arrived.reject(new Error(`${count} of ${spans} spans arrived within ${limitMs} ms`));
  }, limitMs);
  await arrived.promise.finally(() => clearTimeout(limit));
  return count;
});

function take(body: Buffer): void {
  count += spansIn(body);
  if (count === expected.spans) arrived.resolve();
  else if (count > expected.spans) arrived.reject(new Error(`${count} spans arrived, not ${expected.spans}`));
}

createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('end', () => {
    take(Buffer.concat(chunks));
    res.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end();
  });
}).listen(0, '127.0.0.1');
