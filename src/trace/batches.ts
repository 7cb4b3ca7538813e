/**
 * Gathers spans and has them sent: when there are enough, and otherwise after a while. One batch is on its way
 * at a time; what comes meanwhile waits, up to a bound, beyond which it is lost. So is what a collector does not
 * take. Either is told once, until it is better again.
 */
import type { Clock } from '../clock.ts';
import type { TracingConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import type { EndedSpan, SpanRequest } from './otlp.ts';

export interface BatchesOptions {
  readonly limits: TracingConfig['batch'];
  readonly newRequest: () => SpanRequest;
  /** Rejects where the collector does not take it. */
  readonly send: (request: Buffer) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Batches {
  add(span: EndedSpan): void;
  /** Sends what is left. Never rejects. */
  flush(): Promise<void>;
}

/**
 * Between calls, what writes spans has to be fetched into the caches of the processor anew: for one span that
 * takes as long as writing it. For many it is a delay of calls, though a short one.
 */
const WRITTEN_AT_ONCE = 64;

export function createBatches({ limits, newRequest, send, clock, log }: BatchesOptions): Batches {
  const { scheduledDelayMillis, maxQueueSize, maxExportBatchSize } = limits;
  let filling = newRequest();
  /** For the one that is being filled: all, and those of them that are not written yet. */
  let gathered = 0;
  let unwritten: EndedSpan[] = [];
  const full: SpanRequest[] = [];
  /** One that was sent: its memory has been got from the system already. */
  let spare: SpanRequest | undefined;
  let sending: Promise<void> | undefined;
  let cancelTimer: (() => void) | undefined;
  let fault: string | undefined;

  function write(): void {
    for (const span of unwritten) filling.add(span);
    unwritten = [];
  }

  function close(): void {
    cancelTimer?.();
    cancelTimer = undefined;
    if (gathered === 0) return;
    write();
    gathered = 0;
    full.push(filling);
    filling = spare ?? newRequest();
    spare = undefined;
  }

  async function sendAll(): Promise<void> {
    for (let request = full.shift(); request !== undefined; request = full.shift()) {
      try {
        await send(request.bytes());
        request.clear();
        spare = request;
        tell(undefined);
      } catch (error) {
        // A connection may still hold what it did not get rid of.
        tell((error as Error).message);
      }
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
      unwritten.push(span);
      if (unwritten.length >= WRITTEN_AT_ONCE) write();
      gathered += 1;
      if (gathered >= maxExportBatchSize) void flush();
      else cancelTimer ??= clock.after(scheduledDelayMillis, () => void flush());
    },
    flush,
  };
}
