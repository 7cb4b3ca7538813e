/**
 * A receiver that keeps what it got and lets a test wait for it.
 */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** `X-Request-Id`. */
  readonly runId: string;
}

export interface Inbox {
  readonly url: string;
  readonly received: readonly Received[];
  /** The first delivery of a run, waiting for it if need be. */
  of(runId: string): Promise<Received>;
  /** Waits until this many have come in all. */
  count(number: number): Promise<readonly Received[]>;
  close(): Promise<void>;
}

/** `answer` gives the status for each delivery. */
export async function openInbox(answer: (delivery: Received) => number = () => 200): Promise<Inbox> {
  const received: Received[] = [];
  let wake = Promise.withResolvers<void>();
  async function take(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const delivery = {
      path: req.url!,
      headers: req.headers,
      body: Buffer.concat(chunks),
      runId: String(req.headers['x-request-id']),
    };
    received.push(delivery);
    res.writeHead(answer(delivery)).end('thanks');
    wake.resolve();
    wake = Promise.withResolvers<void>();
  }
  const server = createServer((req, res) => {
    take(req, res).catch(() => res.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  async function until<T>(found: () => T | undefined): Promise<T> {
    for (;;) {
      const value = found();
      if (value !== undefined) return value;
      await wake.promise;
    }
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    of: runId => until(() => received.find(each => each.runId === runId)),
    count: number => until(() => (received.length >= number ? received : undefined)),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Computed here on its own, from the contract. */
export function signatureOf(delivery: Received, secret: string): string {
  const { headers, body } = delivery;
  const hmac = createHmac('sha256', secret);
  hmac.update(`${headers['x-request-id']}.${headers['x-service-webhook-timestamp']}.`).update(body);
  return `v1,${hmac.digest('hex')}`;
}
