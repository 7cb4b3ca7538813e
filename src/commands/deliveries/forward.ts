/**
 * Brings deliveries to a server of a developer: each round of each delivery once, as the service would send it,
 * signed anew with a secret that is known there. What comes of it is told and changes nothing at the service.
 */
import type { Clock } from '../../clock.ts';
import { createSender, type Outcome, type Sender } from '../../delivery/attempt.ts';
import { explain } from '../../delivery/explanations.ts';
import type { TargetUrl } from '../../delivery/target-url.ts';
import type { Client } from '../client.ts';
import { type DeliveryFacts, type DeliveryWithBody, readWithBody } from './answer.ts';
import { Recent } from './recent.ts';

export interface Forwarded {
  readonly runId: string;
  readonly round: number;
  /** What the server answered, or why there is no answer. */
  readonly answer: ForwardedAnswer;
}

export type ForwardedAnswer =
  | { readonly status: number; readonly totalMs: number; readonly excerpt: string }
  | { readonly code: string; readonly meaning: string; readonly advice?: string };

export interface ForwarderOptions {
  readonly client: Client;
  readonly to: TargetUrl;
  readonly secret: string;
  readonly userAgent: string;
  readonly clock: Clock;
  /** Ends it: what is under way is cut off, and not told. */
  readonly signal: AbortSignal;
  readonly tell: (forwarded: Forwarded) => void;
}

export interface Forwarder {
  /** Resolves once there is room for another. */
  take(delivery: DeliveryFacts): Promise<void>;
  close(): Promise<void>;
}

/** As an attempt of the service has, unless it is configured. */
const TIMEOUT_MS = 15_000;
const AT_ONCE = 8;
/** Rounds that are remembered. */
const MEMORY = 50_000;

export function createForwarder(options: ForwarderOptions): Forwarder {
  const { client, clock, userAgent, signal, tell } = options;
  // Where deliveries go on this side is for whoever runs the command to say.
  const policy = { judge: () => ({ allowed: true }) as const };
  const sender = createSender({ policy, timeout: TIMEOUT_MS, userAgent, clock });
  const seen = new Recent<string, true>(MEMORY);
  const underWay = new Set<Promise<void>>();
  signal.addEventListener('abort', () => void sender.close(), { once: true });

  async function forward({ run_id: runId, round }: DeliveryFacts): Promise<void> {
    const delivery = await readWithBody(client, runId, signal);
    const answer =
      delivery.kind === 'fault'
        ? { code: 'not_read', meaning: delivery.message }
        : await post(sender, delivery, options);
    if (!signal.aborted) tell({ runId, round, answer });
  }

  return {
    async take(delivery) {
      const key = `${delivery.run_id} ${delivery.round}`;
      if (seen.get(key)) return;
      seen.set(key, true);
      const forwarding = forward(delivery).finally(() => underWay.delete(forwarding));
      underWay.add(forwarding);
      if (underWay.size >= AT_ONCE) await Promise.race(underWay);
    },
    async close() {
      await sender.close();
      await Promise.all(underWay);
    },
  };
}

async function post(
  sender: Sender,
  { details, body }: DeliveryWithBody,
  { to, secret }: ForwarderOptions,
): Promise<ForwardedAnswer> {
  if (body === undefined) return failure('body_missing');
  const outcome = await sender.send({
    runId: details.run_id,
    target: to.url.href,
    confidential: {
      secret: Buffer.from(secret),
      ...(to.authorization !== undefined && { authorization: to.authorization }),
    },
    body: { bytes: body },
    number: 1,
    standardWebhooks: 'webhook-id' in details.request!.headers,
    permitted: () => true,
  });
  return 'withheld' in outcome ? failure('other') : answerOf(outcome);
}

function answerOf({ status, error, excerpt, timings }: Outcome): ForwardedAnswer {
  if (status === undefined) return failure(error ?? 'other');
  return { status, totalMs: timings.totalMs, excerpt: new TextDecoder().decode(excerpt) };
}

function failure(code: string): ForwardedAnswer {
  return { code, ...explain(code) };
}
