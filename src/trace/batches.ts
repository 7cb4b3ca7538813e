/**
 * Gathers spans and has them sent: when there are enough, and otherwise after a while. One batch is on its way
 * at a time; what comes meanwhile waits, up to a bound, beyond which it is lost. So is what a collector does not
 * take. Either is told once, until it is better again.
 */
import type { Clock } from '../clock.ts';
import type { TracingConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import { type EndedSpan, writeSpan } from './otlp.ts';
import { ProtobufWriter } from './protobuf.ts';

export interface BatchesOptions {
  readonly limits: TracingConfig['batch'];
  /** Sends spans that are written one after the other; rejects where the collector does not take them. */
  readonly send: (spans: Uint8Array) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Batches {
  add(span: EndedSpan): void;
  /** Sends what is left. Never rejects. */
  flush(): Promise<void>;
}

const FIRST_BYTES = 256 * 1024;

export function createBatches({ limits, send, clock, log }: BatchesOptions): Batches {
  const { scheduledDelayMillis, maxQueueSize, maxExportBatchSize } = limits;
  const writer = new ProtobufWriter(FIRST_BYTES);
  /** In the writer. */
  let gathered = 0;
  const full: Uint8Array[] = [];
  let sending: Promise<void> | undefined;
  let cancelTimer: (() => void) | undefined;
  let fault: string | undefined;

  function close(): void {
    cancelTimer?.();
    cancelTimer = undefined;
    if (gathered === 0) return;
    gathered = 0;
    full.push(writer.take());
  }

  async function sendAll(): Promise<void> {
    for (let spans = full.shift(); spans !== undefined; spans = full.shift()) {
      await send(spans).then(
        () => tell(undefined),
        (error: unknown) => tell((error as Error).message),
      );
    }
    sending = undefined;
  }

  function tell(now: string | undefined): void {
    if (now !== undefined && fault === undefined) log.warn({ fault: now }, 'spans are lost');
    if (now === undefined && fault !== undefined) log.info('spans are sent again');
    fault = now;
  }

  async function flush(): Promise<void> {
    close();
    if (full.length > 0) sending ??= sendAll();
    await sending;
  }

  return {
    add(span) {
      if (gathered + full.length * maxExportBatchSize >= maxQueueSize) {
        tell('more than can wait to be sent');
        return;
      }
      writeSpan(writer, span);
      gathered += 1;
      if (gathered >= maxExportBatchSize) void flush();
      else cancelTimer ??= clock.after(scheduledDelayMillis, () => void flush());
    },
    flush,
  };
}
