/**
 * WebSocket upgrades to custom apps: the handshake is forwarded, then the two connections are joined and
 * bytes pass both ways until either side ends. An app that answers with anything but 101 is answered for
 * like any other.
 */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { Problem } from '../errors.ts';
import { type Caller } from './caller.ts';
import { Exchange, type ExchangeDeps, type ExchangeEvents } from '../exchange/exchange.ts';
import type { Run } from '../exchange/run.ts';
import { answerHeaders, decodeHeaders } from '../exchange/headers.ts';

/** Asked of every request with `Upgrade`; what is not a WebSocket is served as if it had not asked. */
export function isWebSocket(req: IncomingMessage): boolean {
  return req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket';
}

/** An ordinary response on the socket of an upgrade request, for all that is not 101. */
export function responseOn(req: IncomingMessage, socket: Duplex): ServerResponse {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0]);
  res.on('finish', () => socket.end());
  return res;
}

export interface Upgrade {
  readonly res: ServerResponse;
  readonly socket: Duplex;
  /** What the caller has sent after its handshake. */
  readonly head: Buffer;
}

export class UpgradeExchange extends Exchange {
  readonly #upgrade: Upgrade;
  readonly #unwatch: () => void;
  readonly #onJoined: (caller: Duplex, app: Duplex) => void;

  constructor(
    deps: ExchangeDeps,
    run: Run,
    caller: Caller,
    upgrade: Upgrade,
    on: ExchangeEvents & { joined(caller: Duplex, app: Duplex): void },
  ) {
    super(deps, run, caller, on);
    this.#upgrade = upgrade;
    this.#unwatch = destroyAtEnd(upgrade.socket);
    this.#onJoined = (caller, app) => on.joined(caller, app);
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    app: Duplex,
  ): void {
    const { res, socket, head } = this.#upgrade;
    if (status !== 101 || this.caller.gone) {
      app.destroy();
      this.fail(new Problem('app_bad_answer', 'The app did not accept the upgrade'));
      return;
    }
    this.#unwatch();
    res.detachSocket(socket as Parameters<ServerResponse['detachSocket']>[0]);
    this.handOver(status, app);
    socket.write(switchingProtocols(decodeHeaders(controller.rawHeaders), this.run.runId), 'latin1');
    if (head.length > 0) app.write(head);
    join(socket, app);
    this.#onJoined(socket, app);
  }
}

/**
 * Nobody reads the connection until the app has answered, and so nobody would see its end: looked for here,
 * without taking anything off it.
 */
function destroyAtEnd(socket: Duplex): () => void {
  const look = (): void => {
    if (socket.readableLength === 0) socket.read();
  };
  const end = (): void => {
    socket.destroy();
  };
  socket.on('readable', look).on('end', end);
  return () => socket.off('readable', look).off('end', end);
}

function switchingProtocols(headers: string[], runId: string): string {
  let text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n';
  const passed = answerHeaders(headers, runId, false);
  for (let i = 0; i < passed.length; i += 2) text += `${passed[i]}: ${passed[i + 1]}\r\n`;
  return `${text}\r\n`;
}

/** How long the last bytes to one side may take once the other has closed. */
const CLOSING_MS = 10_000;

/** Bytes both ways, with back-pressure; the end or failure of one side is that of the other. */
function join(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy());
    from.on('close', () => {
      if (!from.readableEnded) to.destroy();
      else closeSoon(to);
    });
    from.pipe(to);
  }
}

/** What was written is still sent, and what comes is thrown away, until the other end closes as well. */
function closeSoon(side: Duplex): void {
  if (side.destroyed) return;
  const timer = setTimeout(() => side.destroy(), CLOSING_MS);
  side.once('close', () => clearTimeout(timer));
  side.end();
  side.resume();
}
