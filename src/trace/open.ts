/**
 * Opens tracing where the configuration asks for it: spans that end are gathered and POSTed to a collector.
 */
import type { Clock } from '../clock.ts';
import type { TracingConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import type { Tracing } from '../trace.ts';
import { createBatches } from './batches.ts';
import { openCollector } from './collector.ts';
import { createIds } from './ids.ts';
import { createSpanRequest } from './otlp.ts';
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
  const collector = openCollector({ config, clock });
  const scope = { name: NAME, version, resource: resource.flat() };
  const batches = createBatches({
    limits,
    newRequest: () => createSpanRequest(scope),
    send: request => collector.post(request),
    clock,
    log,
  });
  const spans = createSpans({ sampler, ids: createIds(), clock, record: span => batches.add(span) });
  return {
    ...spans,
    async stop() {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(LAST_MS, resolve);
      await Promise.race([batches.flush(), late]);
      cancel();
      await collector.close();
    },
  };
}
