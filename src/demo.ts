/**
 * The apps of `afterword dev`, each on a port of its own: functions as a cortex app's server would offer
 * them, and a custom server with a page, a JSON answer and a stream.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface DemoApps {
  readonly functions: URL;
  readonly web: URL;
  stop(): Promise<void>;
}

export async function startDemoApps(): Promise<DemoApps> {
  const functions = await serve(callFunction);
  const web = await serve(serveWeb);
  return {
    functions: functions.url,
    web: web.url,
    async stop() {
      await Promise.all([functions.stop(), web.stop()]);
    },
  };
}

async function serve(
  listener: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
): Promise<{ url: URL; stop(): Promise<void> }> {
  const handle: RequestListener = (req, res) => {
    listener(req, res).catch(() => res.destroy());
  };
  const server = createServer(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type Parameters = Readonly<Record<string, unknown>>;

/** POST /<function> with JSON parameters, as every cortex app's server takes it. */
const FUNCTIONS: Readonly<Record<string, (parameters: Parameters) => unknown>> = {
  run: ({ name = 'world' }) => ({ greeting: `Hello, ${String(name)}!` }),
  teapot: () => ({ status_code: 418, message: 'short and stout' }),
  fail: () => {
    throw new TypeError('this function always fails');
  },
  slow: async ({ seconds = 3 }) => {
    await sleep(Math.min(Number(seconds), 60) * 1000);
    return { slept: seconds };
  },
};

async function callFunction(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const parameters = JSON.parse(await readText(req)) as Parameters;
  const name = req.url!.slice(1);
  const run = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  if (run === undefined) {
    const known = Object.keys(FUNCTIONS).join(', ');
    json(res, 404, {
      error: { type: 'NotFound', message: `there is no function ${name}; there are ${known}` },
    });
    return;
  }
  try {
    json(res, 200, await run(parameters));
  } catch (error) {
    const { name: type, message } = error as Error;
    json(res, 500, { error: { type, message } });
  }
}

async function serveWeb(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { pathname } = new URL(req.url!, 'http://app');
  if (pathname === '/count') {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    for (let count = 1; count <= 5; count++) {
      res.write(`data: {"count":${count}}\n\n`);
      await sleep(300);
    }
    res.end();
  } else if (pathname === '/echo') {
    json(res, 200, { method: req.method, url: req.url, headers: req.headers, body: await readText(req) });
  } else {
    res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
    res.end('<!doctype html><title>demo</title><p>A custom app. Try /echo and /count.</p>\n');
  }
}

function json(res: ServerResponse, status: number, value: unknown): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

async function readText(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
