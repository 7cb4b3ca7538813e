/**
 * A collector of traces for tests: takes OTLP over HTTP on a port of its own, and decodes of it what tests look
 * at. The numbers of the fields are those of opentelemetry-proto.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, vi } from 'vitest';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly failed: boolean;
  readonly durationMs: number;
}

export interface Collector extends AsyncDisposable {
  /** Of traces. */
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** Of whoever sent spans last. */
  readonly resource: Readonly<Record<string, string | number>>;
  /** The spans of a run, once there are so many. */
  ofRun(runId: string, count: number): Promise<readonly CollectedSpan[]>;
}

export async function openCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  let resource: Record<string, string | number> = {};
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      for (const group of fieldsOf(Buffer.concat(chunks)).all(1)) {
        const [about] = fieldsOf(group).all(1);
        resource = attributesOf(fieldsOf(about!).all(1));
        const scopes = fieldsOf(group).all(2);
        spans.push(...scopes.flatMap(scope => fieldsOf(scope).all(2).map(spanOf)));
      }
      res.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end();
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const ofRun = (runId: string) => {
    const named = spans.filter(({ attributes }) => attributes['afterword.run_id'] === runId);
    const ids = new Set(named.map(({ spanId }) => spanId));
    return spans.filter(({ spanId, parentSpanId }) => ids.has(spanId) || ids.has(parentSpanId));
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    get resource() {
      return resource;
    },
    async ofRun(runId, count) {
      await vi.waitFor(() => expect(ofRun(runId)).toHaveLength(count), { interval: 10, timeout: 10_000 });
      return ofRun(runId);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

const KINDS = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const STATUS_ERROR = 2;

function spanOf(bytes: Buffer): CollectedSpan {
  const fields = fieldsOf(bytes);
  const [status] = fields.all(15);
  return {
    traceId: fields.hex(1),
    spanId: fields.hex(2),
    traceState: fields.text(3),
    parentSpanId: fields.hex(4),
    name: fields.text(5),
    kind: KINDS[fields.number(6)]!,
    durationMs: Number(fields.fixed(8) - fields.fixed(7)) / 1e6,
    attributes: attributesOf(fields.all(9)),
    links: fields.all(13).map(link => ({ traceId: fieldsOf(link).hex(1), spanId: fieldsOf(link).hex(2) })),
    failed: status !== undefined && fieldsOf(status).number(3) === STATUS_ERROR,
  };
}

function attributesOf(pairs: readonly Buffer[]): Record<string, string | number> {
  return Object.fromEntries(
    pairs.map(pair => {
      const fields = fieldsOf(pair);
      const value = fieldsOf(fields.all(2)[0]!);
      return [fields.text(1), value.has(1) ? value.text(1) : value.number(3)];
    }),
  );
}

interface Fields {
  has(field: number): boolean;
  all(field: number): Buffer[];
  text(field: number): string;
  hex(field: number): string;
  number(field: number): number;
  fixed(field: number): bigint;
}

/** The fields of one message: lengths with their bytes, and numbers. */
export function fieldsOf(bytes: Buffer): Fields {
  const found: [field: number, value: Buffer | bigint][] = [];
  let at = 0;
  const varint = (): bigint => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const key = Number(varint());
    const kind = key & 7;
    if (kind === 0) found.push([key >> 3, varint()]);
    else if (kind === 1) found.push([key >> 3, take(8).readBigUInt64LE()]);
    else if (kind === 5) found.push([key >> 3, BigInt(take(4).readUInt32LE())]);
    else found.push([key >> 3, take(Number(varint()))]);
  }
  const all = (field: number): Buffer[] =>
    found.flatMap(([number, value]) => (number === field && typeof value !== 'bigint' ? [value] : []));
  const fixed = (field: number): bigint => (found.find(([number]) => number === field)?.[1] ?? 0n) as bigint;
  return {
    has: field => found.some(([number]) => number === field),
    all,
    text: field => all(field)[0]?.toString() ?? '',
    hex: field => all(field)[0]?.toString('hex') ?? '',
    number: field => Number(fixed(field)),
    fixed,
  };
}
