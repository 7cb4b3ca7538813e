/**
 * Apps for tests: a handler on a free port, or a hand-written one on the bare socket.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerOptions } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';

export interface TestApp {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

export async function openApp(handler: RequestListener, options: ServerOptions = {}): Promise<TestApp> {
  const server = createServer(options, handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...addressOf(server),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** The whole body of a request. */
export async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** For answers that node:http would never give. */
export async function openRawApp(handler: (socket: Socket) => void): Promise<TestApp> {
  const sockets = new Set<Socket>();
  const server = createTcpServer(socket => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    handler(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...addressOf(server),
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

function addressOf(server: Server): { url: string; port: number } {
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}
