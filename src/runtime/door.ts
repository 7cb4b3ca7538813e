/**
 * Where the process of an app listens, and the connections to it.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Pool } from 'undici';

export type Door = { readonly socket: string } | { readonly port: number };

/** As for apps elsewhere: a server of the operator's own may close idle connections without saying so. */
const IDLE = { keepAliveTimeout: 1_000, keepAliveMaxTimeout: 4_000, keepAliveTimeoutThreshold: 1_000 };

export function openPool(door: Door, appTimeout: number): Pool {
  const bySocket = 'socket' in door;
  return new Pool(bySocket ? 'http://localhost' : `http://127.0.0.1:${door.port}`, {
    allowH2: false,
    pipelining: 1,
    connect: bySocket ? { socketPath: door.socket } : {},
    headersTimeout: appTimeout,
    bodyTimeout: appTimeout,
    maxHeaderSize: 64 * 1024,
    ...(!bySocket && IDLE),
  });
}

export async function canConnect(door: Door): Promise<boolean> {
  const socket = 'socket' in door ? connect(door.socket) : connect(door.port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false; // not yet
  } finally {
    socket.destroy();
  }
}
