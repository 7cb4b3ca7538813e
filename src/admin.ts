/**
 * The admin listener: is the process alive (`/healthz`), can it take deliveries (`/readyz`), what has it
 * counted (`/metrics`, for holders of the admin token where there is one).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Address } from './config/config.ts';
import { listenError } from './errors.ts';
import type { Metrics } from './metrics.ts';

/** Why the service is not ready, or undefined when it is. */
export type Readiness = () => 'starting' | 'stopping' | 'store_unavailable' | undefined;

export interface AdminOptions {
  readonly token: string | undefined;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly readiness: Readiness;
}

export interface Admin {
  listen(address: Address): Promise<AddressInfo>;
  stop(): Promise<void>;
}

export function createAdmin({ token, metrics, readiness }: AdminOptions): Admin {
  let server: Server | undefined;

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url!.split('?', 1)[0];
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      send(res, 405, 'method not allowed\n', { Allow: 'GET, HEAD' });
    } else if (path === '/healthz') {
      send(res, 200, 'ok\n');
    } else if (path === '/readyz') {
      const obstacle = readiness();
      send(res, obstacle === undefined ? 200 : 503, `${obstacle ?? 'ready'}\n`);
    } else if (path !== '/metrics') {
      send(res, 404, 'not found\n');
    } else if (token !== undefined && !isToken(req.headers.authorization, token)) {
      send(res, 401, 'a valid admin token is required\n', {
        'WWW-Authenticate': 'Bearer realm="afterword admin"',
      });
    } else {
      send(res, 200, await metrics.text(), { 'Content-Type': metrics.contentType });
    }
  }

  return {
    async listen({ host, port }) {
      const listening = createServer((req, res) => {
        answer(req, res).catch(() => send(res, 500, 'the metrics could not be read\n'));
      });
      server = listening;
      await new Promise<void>((resolve, reject) => {
        listening.once('error', error => reject(listenError(error, { host, port })));
        listening.listen({ host, port }, resolve);
      });
      return listening.address() as AddressInfo;
    },
    async stop() {
      if (server === undefined) return;
      const closed = new Promise(resolve => server!.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function send(res: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  res.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    ...headers,
  });
  res.end(text);
}

/** Digests are of one length, so the comparison tells nothing of the token's. */
function isToken(authorization: string | undefined, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`));
}
