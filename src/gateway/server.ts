/**
 * The public listener: its sockets, from the first connection to the last. What comes over them is the
 * intake's.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, type Socket, Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Address } from '../config/config.ts';
import { listenError, Problem } from '../errors.ts';
import { Intake, type IntakeOptions } from './intake.ts';
import { refuseConnection } from './unreadable.ts';
import { isWebSocket } from './websocket.ts';

export interface Gateway {
  /** How many callers are connected. */
  readonly connections: number;
  listen(address: Address): Promise<AddressInfo>;
  /** The next `count` answers are the last on their connections: those callers come again on new ones. */
  shed(count: number): void;
  /** Takes no more calls and lets those under way end. */
  stop(manner: GatewayStop): Promise<void>;
}

export interface GatewayStop {
  /** How long calls may take to end. */
  readonly graceMs: number;
  /**
   * Before that, for so long, calls are taken as ever, but each as the last on its connection: a balancer that
   * sees that the node is no longer ready gives them to others, and none is lost.
   */
  readonly noticeMs?: number;
  /**
   * Another process takes calls at the same address. Callers then keep their connections until an answer has
   * told them that it is the last: whoever closes a connection just as a call comes over it fails that call.
   * WebSockets have the whole time.
   */
  readonly handOver?: boolean;
}

const HEADERS_TIMEOUT_MS = 30_000;
const MAX_HEADER_BYTES = 32 * 1024;
const IDLE_CALLER_MS = 65_000;
/** What is failed at the end of the grace has this long to be stored. */
const SETTLE_MS = 5_000;
/** Between two looks, while the listener stops, for connections whose call has ended. */
const CLOSE_IDLE_MS = 50;
/** How long a caller may wait with its next call after a hand-over. */
const HANDED_OVER_IDLE_MS = 5_000;

export function createGateway(options: IntakeOptions): Gateway {
  return new PublicListener(options);
}

class PublicListener implements Gateway {
  readonly #options: IntakeOptions;
  readonly #intake: Intake;
  readonly #connections = new Set<Socket>();
  /** Those that have left HTTP, or may, and what they are joined with: the server does not know them any more. */
  readonly #upgraded = new Set<Duplex>();
  #server: Server | undefined;
  /** So many answers are to be the last on their connections. */
  #closing = 0;
  #stopping = false;
  #handingOver = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#intake = new Intake(options);
  }

  get connections(): number {
    return this.#connections.size;
  }

  shed(count: number): void {
    this.#closing = Math.max(this.#closing, count);
  }

  async listen({ host, port }: Address): Promise<AddressInfo> {
    const server = createServer({
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: 0, // a body may take as long as it keeps coming
      keepAliveTimeout: IDLE_CALLER_MS,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: MAX_HEADER_BYTES,
      noDelay: true,
      optimizeEmptyRequests: true,
      requireHostHeader: false, // refused by the gateway itself, as a problem
      shouldUpgradeCallback: isWebSocket,
    });
    server.on('connection', socket => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    // A request that expects something is a request like any other here.
    for (const event of ['request', 'checkContinue', 'checkExpectation']) {
      server.on(event, (req: IncomingMessage, res: ServerResponse) => {
        if (this.#closing > 0) {
          this.#closing -= 1;
          res.shouldKeepAlive = false;
        }
        this.#intake.take(req, res);
      });
    }
    server.on('upgrade', (req, socket, head) => {
      socket.on('error', () => socket.destroy());
      this.#track(socket);
      this.#intake.takeUpgrade(req, socket, head, app => this.#track(app));
    });
    server.on('clientError', (error, socket) => refuseConnection(error, socket, this.#intake.newRunId()));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', error => reject(listenError(error, { host, port })));
      server.listen({ host, port }, resolve);
    });
    return server.address() as AddressInfo;
  }

  async stop({ graceMs, noticeMs = 0, handOver = false }: GatewayStop): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#closing = Number.POSITIVE_INFINITY;
    if (noticeMs > 0) await new Promise<void>(resolve => void this.#options.clock.after(noticeMs, resolve));
    this.#stopping = true;
    this.#handingOver = handOver;
    this.#intake.endWaits();
    const closed = new Promise<void>(resolve => {
      // The HTTP server's own closes idle connections at once.
      if (handOver) TcpServer.prototype.close.call(server, () => resolve());
      else server.close(() => resolve());
    });
    const ended = Promise.all([closed, this.#intake.idle()]);
    const cancel = handOver ? this.#letGo(server) : this.#cutOff(server);
    await Promise.race([ended, this.#endOfGrace(server, graceMs, ended)]);
    cancel();
    await this.#intake.close();
  }

  /** Connections without a call are closed, now and whenever one ends; the returned function ends that. */
  #cutOff(server: Server): () => void {
    for (const socket of this.#upgraded) socket.destroy();
    this.#closeIdle(server);
    const closing = setInterval(() => this.#closeIdle(server), CLOSE_IDLE_MS);
    return () => clearInterval(closing);
  }

  /** Connections without a call are closed after a while. */
  #letGo(server: Server): () => void {
    server.keepAliveTimeout = HANDED_OVER_IDLE_MS;
    for (const socket of this.#connections) {
      // It has a timeout only between two calls; the next call takes it off again.
      if (socket.timeout) socket.setTimeout(HANDED_OVER_IDLE_MS);
    }
    return this.#options.clock.after(HANDED_OVER_IDLE_MS, () => this.#closeUnused());
  }

  /** Calls that have not ended by then fail; resolves when those are settled, or have had time for it. */
  async #endOfGrace(server: Server, graceMs: number, ended: Promise<unknown>): Promise<void> {
    if (!(await this.#passes(graceMs, ended))) return;
    this.#intake.failAll(new Problem('shutting_down', 'The service stopped before the app had answered'));
    await setImmediate(); // a turn of the loop, in which their callers are told
    for (const socket of this.#upgraded) socket.destroy();
    server.closeAllConnections();
    await this.#passes(SETTLE_MS, ended);
  }

  /** Whether this time passes before `event`. */
  async #passes(ms: number, event: Promise<unknown>): Promise<boolean> {
    let cancel = (): void => {};
    const time = new Promise<boolean>(resolve => {
      cancel = this.#options.clock.after(ms, () => resolve(true));
    });
    const passed = await Promise.race([event.then(() => false), time]);
    cancel();
    return passed;
  }

  /** Of callers who wait with their next call, or have not sent one yet. */
  #closeIdle(server: Server): void {
    server.closeIdleConnections();
    this.#closeUnused();
  }

  #closeUnused(): void {
    for (const socket of this.#connections) if (socket.bytesRead === 0) socket.destroy();
  }

  #track(socket: Duplex): void {
    if (this.#stopping && !this.#handingOver) socket.destroy();
    this.#upgraded.add(socket);
    socket.once('close', () => this.#upgraded.delete(socket));
  }
}
