/**
 * Receivers for tests, on loopback and ports of their own: one that speaks HTTP and notes what it gets, and
 * hostile ones that speak raw bytes. Each is closed by `await using`, its connections with it.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import net, { type AddressInfo, type Socket } from 'node:net';
import { expect, vi } from 'vitest';

export interface Received {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface Receiver extends AsyncDisposable {
  readonly port: number;
  /** With the host that it listens on, and no trailing slash. */
  readonly url: string;
  readonly requests: readonly Received[];
  /** How many connections it has seen, and the ones that are open. */
  readonly connections: number;
  readonly sockets: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/** Answers a request that has arrived whole; a number is the status of an empty answer. */
export type Answering = number | ((received: Received, response: ServerResponse) => void);

export interface ReceiverOptions {
  readonly host?: string;
  readonly port?: number;
  /** Speaks TLS with this certificate. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

export async function startReceiver(
  answering: Answering = 200,
  options: ReceiverOptions = {},
): Promise<Receiver> {
  const requests: Received[] = [];
  const server: HttpServer = options.tls === undefined ? createServer() : createSecureServer(options.tls);
  server.on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers, rawHeaders } = request;
      const received = { method, url, headers, rawHeaders, body: Buffer.concat(chunks) };
      requests.push(received);
      if (typeof answering === 'number') response.writeHead(answering).end();
      else answering(received, response);
    });
  });
  const listening = await listen(server, options);
  const { protocol, host } = {
    protocol: options.tls === undefined ? 'http' : 'https',
    host: urlHost(options.host),
  };
  return Object.assign(listening, { url: `${protocol}://${host}:${listening.port}`, requests });
}

/** What a hostile receiver does with a connection, from the moment it is there. */
export type Behaviour = (socket: Socket) => void;

/** A receiver that speaks no HTTP of its own accord. It reads nothing unless its behaviour does. */
export async function startHostile(behaviour: Behaviour, options: ReceiverOptions = {}): Promise<Receiver> {
  const server = net.createServer({ pauseOnConnect: true }, behaviour);
  const listening = await listen(server, options);
  return Object.assign(listening, { url: `http://${urlHost(options.host)}:${listening.port}`, requests: [] });
}

type Listening = Omit<Receiver, 'url' | 'requests'>;

async function listen(
  server: net.Server,
  { host = '127.0.0.1', port = 0 }: ReceiverOptions,
): Promise<Listening> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const close = async () => {
    if (!server.listening) return;
    const closed = new Promise(resolve => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    sockets,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function urlHost(host = '127.0.0.1'): string {
  return host.includes(':') ? `[${host}]` : host;
}

/**
 * A port of loopback on which nothing listens. It is below the range from which systems take a free port, or
 * somebody else, in another process too, might be given it meanwhile.
 */
export async function closedPort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const receiver = await startHostile(() => {}, { port }).catch(() => undefined);
    await receiver?.close();
    if (receiver !== undefined) return port;
  }
}

/**
 * Throws unless the receiver saw no connection. One of our own follows any that was under way, so that once it
 * is there, it must be the only one.
 */
export async function expectUntouched(canary: Receiver): Promise<void> {
  const { hostname } = new URL(canary.url);
  const probe = net.connect(canary.port, hostname);
  await vi.waitFor(() => expect(canary.connections).toBeGreaterThan(0), { timeout: 10_000, interval: 5 });
  probe.destroy();
  expect(canary.connections).toBe(1);
}

/** Sends `text`, one byte every `ms`, for as long as the connection lives. */
function trickle(socket: Socket, text: string, ms: number): void {
  let sent = 0;
  const timer = setInterval(() => {
    socket.write(text.charAt(sent % text.length));
    sent += 1;
  }, ms);
  socket.on('close', () => clearInterval(timer));
}

/** Writes `chunk` over and over, as fast as the other side takes it. */
function flood(socket: Socket, chunk: Buffer): void {
  const pump = () => {
    while (socket.writable && socket.write(chunk));
  };
  socket.on('drain', pump);
  pump();
}

/** Reads and forgets; calls `then` at the first bytes. */
function onFirstBytes(socket: Socket, then: () => void): void {
  socket.once('data', then);
  socket.resume();
}

const filler = (size: number) => Buffer.alloc(size, 'x');

/** Ways of misbehaving, by what the receiver does. */
export const hostile = {
  neverAnswers: socket => socket.resume(),
  neverReads: () => {},
  closesAtOnce: socket => socket.end(),
  closesAfterReading: socket => onFirstBytes(socket, () => socket.end()),
  resetsAtOnce: socket => socket.resetAndDestroy(),
  resetsAfterReading: socket => onFirstBytes(socket, () => socket.resetAndDestroy()),
  resetsInTheHeaders: socket =>
    onFirstBytes(socket, () => socket.write('HTTP/1.1 200 OK\r\nX-Ha', () => socket.resetAndDestroy())),
  closesInTheHeaders: socket => onFirstBytes(socket, () => socket.end('HTTP/1.1 200 OK\r\nX-Ha')),
  speaksGarbage: socket => onFirstBytes(socket, () => socket.write('\u0000\u0001 is this HTTP?\r\n\r\n')),
  greetsLikeMail: socket => socket.resume().write('220 mail.example ESMTP\r\n'),
  switchesProtocols: socket =>
    onFirstBytes(socket, () =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
    ),
  contradictsItself: socket =>
    onFirstBytes(socket, () =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
    ),
  tricklesTheStatusLine: socket => {
    socket.resume();
    trickle(socket, `HTTP/1.1 200 ${'K'.repeat(10_000)}`, 5);
  },
  tricklesTheBody: socket =>
    onFirstBytes(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
      trickle(socket, 'y', 5);
    }),
  floodsTheReasonPhrase: socket =>
    onFirstBytes(socket, () => {
      socket.write('HTTP/1.1 200 ');
      flood(socket, filler(65_536));
    }),
  floodsTheHeaders: socket =>
    onFirstBytes(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\n');
      flood(socket, Buffer.from(`X-Filler: ${'x'.repeat(1_000)}\r\n`.repeat(64)));
    }),
  floodsInterimAnswers: socket =>
    onFirstBytes(socket, () => flood(socket, Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000)))),
  startsAnEndlessInterimAnswer: socket =>
    onFirstBytes(socket, () => {
      socket.write('HTTP/1.1 103 Early Hints\r\n');
      flood(socket, Buffer.from('X-Hint: x\r\n'.repeat(1_000)));
    }),
  floodsTheBody: socket =>
    onFirstBytes(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n');
      flood(socket, filler(65_536));
    }),
  floodsChunkExtensions: socket =>
    onFirstBytes(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;');
      flood(socket, filler(65_536));
    }),
} as const satisfies Record<string, Behaviour>;

/** Answers with these raw bytes as soon as the first bytes of the request are there. */
export function says(...pieces: readonly string[]): Behaviour {
  return socket => onFirstBytes(socket, () => sayInTurn(socket, pieces));
}

/** Each piece in a packet of its own, as far as a test can have it: the next goes once this one is out. */
function sayInTurn(socket: Socket, [piece, ...rest]: readonly string[]): void {
  if (piece === undefined) return;
  socket.write(piece, () => setImmediate(() => sayInTurn(socket, rest)));
}
