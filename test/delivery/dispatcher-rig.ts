/**
 * What the dispatcher's tests stand on: a data directory, real nodes on it one after the other (SQLite store,
 * sender, dispatcher), and a real receiver on loopback that answers to every host name in `.test`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { createSender, type Sender } from '../../src/delivery/attempt.ts';
import { createDispatcher, type Dispatcher, type DispatcherOptions } from '../../src/delivery/dispatcher.ts';
import { Pending } from '../../src/delivery/pending.ts';
import { createTargetPolicy } from '../../src/delivery/target.ts';
import { createLogger } from '../../src/log.ts';
import { loadKeyring } from '../../src/store/keys.ts';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import type { NewDelivery, Store } from '../../src/store/store.ts';

export interface Received {
  readonly runId: string;
  readonly attempt: number;
  readonly host: string;
  readonly path: string;
  readonly body: string;
}

/** The status to answer with, once it is there. */
export type Answer = (received: Received) => number | Promise<number>;

export interface Receiver {
  readonly received: Received[];
  /** A target at this receiver, under a host name of its own. */
  target(name: string, path?: string): string;
}

export interface Node {
  readonly store: Store;
  readonly tenure: Tenure;
  readonly sender: Sender;
  readonly dispatcher: Dispatcher;
  readonly pending: Pending;
  /** Ends it at once, as a crash would, but with its files closed. */
  halt(): Promise<void>;
}

/** What another node on the same store would bring about. */
export interface Tenure {
  /** From now on this node cannot be sure of what it owns. */
  lapse(): void;
  /** It can again. */
  resume(): void;
  /** Another node has left deliveries. */
  tell(): void;
}

export interface RigOptions {
  readonly answer?: Answer;
  readonly clock?: Clock;
  readonly limits?: Partial<DispatcherOptions['limits']>;
  readonly events?: NonNullable<DispatcherOptions['events']>;
  readonly sends?: boolean;
  readonly shared?: boolean;
}

export type LogLine = Record<string, unknown>;

export interface Rig {
  readonly receiver: Receiver;
  readonly lines: LogLine[];
  /** A node on the rig's data directory, its store open and its dispatcher not yet started. */
  prepare(): Promise<Node>;
  /** The same, started. */
  boot(): Promise<Node>;
  delivery(given?: Partial<NewDelivery>): Omit<NewDelivery, 'owned'>;
}

export async function createRig(options: RigOptions = {}): Promise<Rig> {
  const { clock = systemClock } = options;
  const dir = await mkdtemp(join(tmpdir(), 'afterword-dispatcher-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const receiver = await startReceiver(options.answer ?? (() => 200));
  const lines: LogLine[] = [];

  async function prepare(): Promise<Node> {
    const node = await openNode({ ...options, clock, dir, lines });
    onTestFinished(() => node.halt());
    return node;
  }

  return {
    receiver,
    lines,
    prepare,
    async boot() {
      const node = await prepare();
      await node.dispatcher.start();
      return node;
    },
    delivery: given => ({
      runId: uuidv7(),
      projectId: 'p',
      app: 'hello',
      target: receiver.target('a'),
      statusCode: 200,
      createdAt: clock.now(),
      confidential: {},
      body: { bytes: Buffer.from('{"ok":true}') },
      ...given,
    }),
  };
}

interface NodeOptions extends RigOptions {
  readonly clock: Clock;
  readonly dir: string;
  readonly lines: LogLine[];
}

async function openNode({ clock, dir, lines, limits, ...options }: NodeOptions): Promise<Node> {
  const log = createLogger({
    level: 'debug',
    destination: { write: line => void lines.push(JSON.parse(line) as LogLine) },
  });
  const keyring = loadKeyring({ dir });
  const spoolDir = join(dir, 'spool');
  const sqlite = createSqliteStore({ dir, spoolDir, keyring, nodeId: uuidv7(), clock, log });
  await sqlite.open();
  const { store, tenure } = withTenure(sqlite);
  const sender = createSender({
    policy: createTargetPolicy({ allow: ['127.0.0.1'], listeners: () => [], localAddresses: () => [] }),
    timeout: 15_000,
    userAgent: 'afterword-test',
    clock,
    lookup: async () => ['127.0.0.1'],
  });
  const pending = new Pending({ store, clock, log });
  const dispatcher = createDispatcher({
    store,
    sender,
    pending,
    clock,
    random: () => 0.5,
    log,
    limits: { concurrency: 256, perTarget: 32, ...limits },
    standardWebhooks: () => false,
    ...options,
  });
  let halted: Promise<void> | undefined;
  const halt = async () => {
    await dispatcher.stop({ graceMs: 0 });
    await sender.close();
    await store.close();
  };
  return { store, tenure, sender, dispatcher, pending, halt: () => (halted ??= halt()) };
}

/** The same store, with a tenure that can lapse. */
function withTenure(sqlite: Store): { store: Store; tenure: Tenure } {
  const listeners: Array<() => void> = [];
  let number = 1;
  let isSure = true;
  const tell = () => {
    for (const listener of listeners) listener();
  };
  const store: Store = Object.create(sqlite, {
    tenure: { get: () => (isSure ? number : undefined) },
    watch: { value: (listener: () => void) => listeners.push(listener), writable: true },
  });
  return {
    store,
    tenure: {
      lapse() {
        isSure = false;
      },
      resume() {
        number += 1;
        isSure = true;
        tell();
      },
      tell,
    },
  };
}

async function startReceiver(answer: Answer): Promise<Receiver> {
  const received: Received[] = [];
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const one = await read(request);
    received.push(one);
    response.writeHead(await answer(one)).end();
  };
  const server = createServer((request, response) => {
    receive(request, response).catch(() => response.destroy());
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    const closed = new Promise(resolve => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  return { received, target: (name, path = '/hook') => `http://${name}.test:${port}${path}` };
}

async function read(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const { headers, url = '' } = request;
  return {
    runId: String(headers['x-request-id']),
    attempt: Number(headers['x-service-webhook-attempt']),
    host: String(headers.host).replace(/\.test:\d+$/, ''),
    path: url,
    body: Buffer.concat(chunks).toString(),
  };
}
