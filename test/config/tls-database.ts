/**
 * The very beginning of a PostgreSQL server: it offers TLS, lets everybody in, and notes how they came.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import type { Certificate } from '../support/certificate.ts';

export interface TlsDatabase extends AsyncDisposable {
  readonly port: number;
  /** How each client came: `plain`, `encrypted`, or `encrypted for` the name in its own certificate. */
  readonly sessions: readonly string[];
}

/** Of the message that asks for TLS. */
const SSL_REQUEST = 80_877_103;
/** Authentication is done, and the server is ready for a query. */
const WELCOME = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1');

export async function startTlsDatabase({ key, cert }: Certificate): Promise<TlsDatabase> {
  const secureContext = createSecureContext({ key, cert, ca: cert });
  const sessions: string[] = [];
  const sockets = new Set<Socket>();

  function serve(socket: Socket, session: () => string): void {
    socket.once('data', () => {
      sessions.push(session());
      socket.write(WELCOME);
      socket.resume();
    });
  }

  function upgrade(socket: Socket): void {
    socket.write('S');
    const secure = new TLSSocket(socket, { isServer: true, secureContext, requestCert: true });
    secure.on('error', () => socket.destroy()); // the client does not trust the certificate
    serve(secure, () => {
      const { subject } = secure.getPeerCertificate() ?? {};
      return subject === undefined ? 'encrypted' : `encrypted for ${String(subject.CN)}`;
    });
  }

  const server = createServer(socket => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      if (first.length === 8 && first.readUInt32BE(4) === SSL_REQUEST) return upgrade(socket);
      serve(socket, () => 'plain');
      socket.unshift(first);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    sessions,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
