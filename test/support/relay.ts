/**
 * Stands between a client and a server, and lets a test do to their connections what networks do: hold what is
 * sent, or only the answers, and break them.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Relay {
  readonly port: number;
  /** Holds what both sides send from now on, on connections that come later as well. */
  hold(): void;
  /** Holds what the server sends from now on, or from when a client sends this text on. */
  holdAnswers(from?: string): void;
  /** What was held goes through, and whatever comes after it. */
  resume(): void;
  /** Breaks all connections, with what is held in them; new ones go through. */
  cut(): void;
}

/** To a port of loopback; gone when the test is over. */
export async function startRelay(target: number): Promise<Relay> {
  const pairs = new Set<{ client: Socket; server: Socket }>();
  let held: 'nothing' | 'answers' | 'all' = 'nothing';
  let awaited: string | undefined;

  const listener = createServer(client => {
    const pair = { client, server: connect(target, '127.0.0.1') };
    pairs.add(pair);
    client.on('data', chunk => {
      if (awaited !== undefined && chunk.includes(awaited)) set('answers');
    });
    for (const [from, to] of [
      [client, pair.server],
      [pair.server, client],
    ] as const) {
      from.on('data', chunk => to.write(chunk));
      from.on('error', () => {});
      from.on('close', () => {
        to.destroySoon();
        pairs.delete(pair);
      });
    }
    apply(pair);
  });

  function apply({ client, server }: { client: Socket; server: Socket }): void {
    if (held === 'all') client.pause();
    else client.resume();
    if (held === 'nothing') server.resume();
    else server.pause();
  }
  function set(now: typeof held): void {
    awaited = undefined;
    held = now;
    for (const pair of pairs) apply(pair);
  }
  function cut(): void {
    awaited = undefined;
    held = 'nothing';
    for (const { client, server } of pairs) {
      client.destroy();
      server.destroy();
    }
  }

  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(async () => {
    cut();
    listener.close();
    await once(listener, 'close');
  });
  return {
    port: (listener.address() as AddressInfo).port,
    hold: () => set('all'),
    holdAnswers(from) {
      if (from === undefined) set('answers');
      else awaited = from;
    },
    resume: () => set('nothing'),
    cut,
  };
}
