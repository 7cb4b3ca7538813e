/**
 * A custom app on PORT that tells of itself. `HEALTHY_FILE`: `/health` is 503 until the file is there.
 * `STUBBORN`: it does not end when it is asked to.
 */
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';

const { PORT, HEALTHY_FILE, STUBBORN } = process.env;

const tell: Readonly<Record<string, () => unknown>> = {
  '/pid': () => process.pid,
  '/port': () => Number(PORT),
  '/cwd': () => process.cwd(),
  '/env': () => process.env,
};

const server = createServer((req, res) => {
  const { pathname } = new URL(req.url!, 'http://app');
  if (pathname === '/never') return;
  if (pathname === '/health') {
    res.writeHead(HEALTHY_FILE === undefined || existsSync(HEALTHY_FILE) ? 200 : 503).end();
    return;
  }
  res.end(JSON.stringify(tell[pathname]?.() ?? { method: req.method, url: req.url, headers: req.headers }));
});
// A WebSocket as far as bytes that come back prove one.
server.on('upgrade', (_req, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.on('error', () => socket.destroy());
  socket.pipe(socket);
});
server.listen(Number(PORT), '127.0.0.1');
if (STUBBORN !== undefined) process.on('SIGTERM', () => {});
