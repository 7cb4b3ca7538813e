/**
 * Connections to receivers, kept alive between attempts. Each is an undici client of its own that serves one
 * attempt at a time: whoever takes one gives it back, or discards it when the attempt went wrong. Those that
 * are idle are bounded in number; the one unused for longest goes first.
 */
import type { Socket } from 'node:net';
import { Client } from 'undici';
import type { ConnectTimings, Dialer } from './connect.ts';
import { type Inlet, installInlet } from './inlet.ts';
import { AttemptFault } from './outcome.ts';

export interface Clients {
  /** An idle connection to the origin, or a new one, which is opened by the first request. */
  take(origin: string): Connection;
  /** Keeps the connection for the next attempt, where it is still good for one. */
  giveBack(connection: Connection): void;
  discard(connection: Connection): void;
  /** Ends what is idle and cuts off what is not. */
  close(): Promise<void>;
}

export interface ClientsOptions {
  readonly dial: Dialer;
  readonly maxIdle?: number;
}

const IDLE_MS = 4_000;
const MAX_IDLE = 1_000;
const MAX_HEADERS = 16 * 1024;

export function createClients({ dial, maxIdle = MAX_IDLE }: ClientsOptions): Clients {
  const idle = new IdleConnections();
  const busy = new Set<Connection>();
  let closed = false;

  function open(origin: string): Connection {
    const connection = new Connection(origin, dial);
    connection.client.on('disconnect', () => {
      if (idle.remove(connection)) void connection.destroy();
    });
    return connection;
  }

  return {
    take(origin) {
      if (closed) throw new AttemptFault('interrupted', 'the sender is closed');
      const connection = idle.takeNewest(origin) ?? open(origin);
      connection.prepare();
      busy.add(connection);
      return connection;
    },
    giveBack(connection) {
      busy.delete(connection);
      if (closed || !connection.reusable) return void connection.destroy();
      idle.add(connection);
      if (idle.size > maxIdle) void idle.takeOldest()?.destroy();
    },
    discard(connection) {
      busy.delete(connection);
      void connection.destroy();
    },
    async close() {
      closed = true;
      const connections = [...idle.takeAll(), ...busy];
      await Promise.all(connections.map(connection => connection.destroy()));
    },
  };
}

export class Connection {
  readonly origin: string;
  readonly client: Client;
  /** Of the connect that the present attempt caused; undefined where it found the connection open. */
  timings: ConnectTimings | undefined;
  #socket: Socket | undefined;
  #inlet: Inlet | undefined;
  #dialing: AbortController | undefined;

  constructor(origin: string, dial: Dialer) {
    this.origin = origin;
    this.client = new Client(origin, {
      connect: ({ hostname, protocol, port }, connected) => {
        this.#dial(dial, hostname, protocol, port).then(
          socket => connected(null, socket),
          (error: Error) => connected(error, null),
        );
      },
      allowH2: false,
      pipelining: 1,
      maxHeaderSize: MAX_HEADERS,
      // The attempt's own deadline rules.
      headersTimeout: 0,
      bodyTimeout: 0,
      // undici closes an idle connection itself; a receiver's hint may shorten this, never lengthen it.
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
    });
  }

  /** Before the next attempt. */
  prepare(): void {
    this.timings = undefined;
    this.#inlet?.expectAnswer();
  }

  /** Bytes not sent yet belong to a request that the receiver answered without reading all of it. */
  get reusable(): boolean {
    return this.#socket?.destroyed === false && this.#socket.writableLength === 0;
  }

  async destroy(): Promise<void> {
    const reason = new AttemptFault('interrupted', 'the connection was cut off');
    this.#dialing?.abort(reason);
    await this.client.destroy(reason);
  }

  async #dial(dial: Dialer, hostname: string, protocol: string, port: string): Promise<Socket> {
    const secure = protocol === 'https:';
    const timings = {};
    const dialing = new AbortController();
    this.timings = timings;
    this.#dialing = dialing;
    const { signal } = dialing;
    try {
      const socket = await dial({
        hostname,
        port: Number(port || (secure ? 443 : 80)),
        secure,
        timings,
        signal,
      });
      this.#socket = socket;
      this.#inlet = installInlet(socket);
      return socket;
    } finally {
      this.#dialing = undefined;
    }
  }
}

/** By origin, and all together in the order in which they fell idle. */
class IdleConnections {
  readonly #byOrigin = new Map<string, Connection[]>();
  readonly #inOrder = new Set<Connection>();

  get size(): number {
    return this.#inOrder.size;
  }

  add(connection: Connection): void {
    const same = this.#byOrigin.get(connection.origin);
    if (same === undefined) this.#byOrigin.set(connection.origin, [connection]);
    else same.push(connection);
    this.#inOrder.add(connection);
  }

  remove(connection: Connection): boolean {
    if (!this.#inOrder.delete(connection)) return false;
    const same = this.#byOrigin.get(connection.origin)!;
    same.splice(same.lastIndexOf(connection), 1);
    if (same.length === 0) this.#byOrigin.delete(connection.origin);
    return true;
  }

  takeNewest(origin: string): Connection | undefined {
    const newest = this.#byOrigin.get(origin)?.at(-1);
    if (newest !== undefined) this.remove(newest);
    return newest;
  }

  takeOldest(): Connection | undefined {
    const [oldest] = this.#inOrder;
    if (oldest !== undefined) this.remove(oldest);
    return oldest;
  }

  takeAll(): Connection[] {
    const all = [...this.#inOrder];
    this.#byOrigin.clear();
    this.#inOrder.clear();
    return all;
  }
}
