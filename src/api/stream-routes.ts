/**
 * Deliveries live, as server-sent events: one event for each change of a delivery that the filter asks for, and
 * a comment now and then, so that nobody takes silence for a broken connection. What was missed is not sent
 * again: whoever comes back, or is told that there is such, reads the list.
 */
import type { ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { createRoute, z } from '@hono/zod-openapi';
import type { Clock } from '../clock.ts';
import type { DeliveryFilter, DeliverySummary } from '../store/ledger.ts';
import { StreamQuery } from './delivery-contract.ts';
import { filterOf, matches } from './delivery-filter.ts';
import { deliveryJson } from './delivery-json.ts';
import type { Live } from './live.ts';
import { problemAnswers } from './problems.ts';
import { createRouter, projectOf, type Router } from './router.ts';

export interface StreamRoutesOptions {
  readonly live: Live;
  readonly clock: Clock;
}

const HEARTBEAT_MS = 15_000;
/** What a reader may leave unread before it is cut off. */
const MOST_UNREAD = 1024 * 1024;

const GREETING = ': deliveries, as they change\n\n';
const COME_BACK = ': Last-Event-ID has no effect here, what was missed is in the list of deliveries\n\n';
const MISSED = 'event: missed\ndata: {}\n\n';

const streamDeliveries = createRoute({
  method: 'get',
  path: '/',
  operationId: 'streamDeliveries',
  summary: 'Tells every change of a delivery as it happens',
  request: { query: StreamQuery },
  responses: {
    200: {
      description:
        'Server-sent events, until either side ends it: `event: delivery`, with the delivery as JSON in `data` and its run id in `id`. ' +
        '`event: missed` says that deliveries have changed which are not told one by one. ' +
        '`Last-Event-ID` has no effect: what was missed is in the list of deliveries',
      content: { 'text/event-stream': { schema: z.string() } },
    },
    ...problemAnswers(['invalid_query']),
  },
});

export const STREAM_ROUTES = [streamDeliveries];

export function createStreamRoutes({ live, clock }: StreamRoutesOptions): Router {
  return createRouter('not_found').openapi(streamDeliveries, async c => {
    const { project, ...asked } = c.req.valid('query');
    const filter = filterOf(asked, { projectId: projectOf(c.env.call, project), now: clock.now() });
    const { res, call } = c.env;
    const greeting = c.req.header('Last-Event-ID') === undefined ? GREETING : COME_BACK;
    await stream({ live, clock, filter, res, greeting, signal: call.signal });
    return RESPONSE_ALREADY_SENT;
  });
}

interface Streaming {
  readonly live: Live;
  readonly clock: Clock;
  readonly filter: DeliveryFilter;
  readonly res: ServerResponse;
  readonly greeting: string;
  readonly signal: AbortSignal;
}

/** It is answered once it is complete, and goes on until the connection is closed, by whomever. */
async function stream({ live, clock, filter, res, greeting, signal }: Streaming): Promise<void> {
  let cancelBeat = (): void => {};
  const write = (text: string): void => {
    if (res.writableLength > MOST_UNREAD) res.destroy();
    else res.write(text);
  };
  const beat = (): void => {
    cancelBeat = clock.after(HEARTBEAT_MS, () => {
      write(': still here\n\n');
      beat();
    });
  };
  const end = (): void => void res.end();
  const watch = await live.watch();
  if (res.destroyed) {
    watch.end();
    return;
  }
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
  res.write(greeting);
  watch.tell(news => {
    const text = news === 'missed' ? [MISSED] : news.filter(each => matches(filter, each)).map(eventOf);
    if (text.length > 0) write(text.join(''));
  });
  beat();
  signal.addEventListener('abort', end, { once: true });
  res.once('close', () => {
    watch.end();
    cancelBeat();
    signal.removeEventListener('abort', end);
  });
  if (signal.aborted || res.req.method === 'HEAD') end();
}

function eventOf(delivery: DeliverySummary): string {
  return `event: delivery\nid: ${delivery.runId}\ndata: ${JSON.stringify(deliveryJson(delivery))}\n\n`;
}
