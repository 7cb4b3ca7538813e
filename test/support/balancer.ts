/**
 * A balancer as it stands in front of nodes: connections go in turns to those that say they are ready. One
 * that a node does not take goes to the next; whatever has reached a node stays with it.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { Addresses } from './process.ts';

/** Between two looks at a node. */
const LOOK_MS = 50;

export interface Balancer {
  readonly port: number;
  /** Has it look at a node from now on, in place of the one that was there under this name. */
  put(name: string, node: Addresses): void;
}

/** It does not outlive the test. */
export async function openBalancer(): Promise<Balancer> {
  const nodes = new Map<string, Addresses>();
  let ready: Addresses[] = [];
  let turn = 0;
  const sockets = new Set<Socket>();

  function keep(socket: Socket): Socket {
    sockets.add(socket);
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  }

  async function join(caller: Socket): Promise<void> {
    for (let tries = ready.length; tries > 0; tries -= 1) {
      turn += 1;
      const node = keep(
        connect({ port: ready[turn % ready.length]!.port, host: '127.0.0.1', noDelay: true }),
      );
      const connected = await once(node, 'connect').catch(() => undefined);
      if (connected === undefined) continue;
      couple(caller, node);
      couple(node, caller);
      return;
    }
    caller.destroy();
  }

  const server = createServer({ noDelay: true }, caller => void join(keep(caller)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const looking = new AbortController();
  const look = async (): Promise<void> => {
    while (!looking.signal.aborted) {
      const all = [...nodes.values()];
      const states = await Promise.all(all.map(isReady));
      ready = all.filter((_, index) => states[index]);
      await setTimeout(LOOK_MS);
    }
  };
  const looked = look();
  onTestFinished(async () => {
    looking.abort();
    await looked;
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as AddressInfo).port, put: (name, node) => void nodes.set(name, node) };
}

/** What ends here ends there, and what breaks off here breaks off there. */
function couple(from: Socket, to: Socket): void {
  from.pipe(to);
  from.on('close', () => {
    if (!from.readableEnded) to.destroy();
  });
}

async function isReady({ admin }: Addresses): Promise<boolean> {
  try {
    return (await fetch(`${admin}/readyz`)).ok;
  } catch {
    return false;
  }
}
