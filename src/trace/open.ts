/**
 * Opens tracing where the configuration asks for it: spans that end are gathered and POSTed to a collector.
 */
import { request } from 'undici';
import type { Clock } from '../clock.ts';
import type { TracingConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import type { Tracing } from '../trace.ts';
import { createBatches } from './batches.ts';
import { createIds } from './ids.ts';
import { requestOf } from './otlp.ts';
import { createSharedAttributes } from './shared-attributes.ts';
import { createSpans } from './spans.ts';

export interface OpenTracing extends Tracing {
  /** Sends what is left, for a few seconds at most. Never rejects. */
  stop(): Promise<void>;
}

export interface TracingOptions {
  readonly config: TracingConfig;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const NAME = 'afterword';
const LAST_MS = 3_000;

export function openTracing({ config, version, clock, log }: TracingOptions): OpenTracing {
  const { sampler, batch: limits } = config;
  const resource = Object.entries({ 'service.name': NAME, 'service.version': version, ...config.resource });
  const scope = { name: NAME, version, resource: resource.flat() };
  const batches = createBatches({ limits, send: spans => post(config, requestOf(scope, spans)), clock, log });
  const spans = createSpans({
    sampler,
    ids: createIds(),
    shared: createSharedAttributes(),
    clock,
    record: span => batches.add(span),
  });
  return {
    ...spans,
    async stop() {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(LAST_MS, resolve);
      await Promise.race([batches.flush(), late]);
      cancel();
    },
  };
}

async function post({ endpoint, headers, timeout }: TracingConfig, body: Buffer): Promise<void> {
  const answer = await request(endpoint, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/x-protobuf' },
    body,
    signal: AbortSignal.timeout(timeout),
  });
  await answer.body.dump();
  if (answer.statusCode >= 300) throw new Error(`the collector answers ${answer.statusCode}`);
}
