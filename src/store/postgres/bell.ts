/**
 * LISTEN and NOTIFY: a node that leaves deliveries or runs without an owner, or marks a run to be cancelled,
 * rings, and every node that listens hears it. Only a matter of speed: nothing is lost where a pooler swallows
 * it, or where a connection is down, since nodes look for themselves as well.
 */
import type { Client } from 'pg';
import type { Clock } from '../../clock.ts';
import { type ConnectionOptions, createClient, type Database, disconnect } from './connection.ts';

export interface Bell {
  /** Listens from now on, `channel` being a plain name. */
  start(channel: string): void;
  ring(): void;
  stop(): Promise<void>;
}

export interface BellOptions {
  readonly connection: ConnectionOptions;
  readonly database: Database;
  readonly clock: Clock;
  readonly onRing: () => void;
}

const RECONNECT_MS = 1_000;
const TIMEOUT_MS = 5_000;

export function createBell({ connection, database, clock, onRing }: BellOptions): Bell {
  let channel: string;
  let listener: Client | undefined;
  let stopped = false;
  let cancelRetry = () => {};
  let ringing = false;
  let again = false;

  async function listen(): Promise<void> {
    const client = createClient({ connection, timeoutMs: TIMEOUT_MS });
    listener = client;
    client.on('notification', onRing);
    try {
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      client.once('end', retry);
      onRing(); // one may have been missed
    } catch {
      await disconnect(client);
      retry();
    }
  }

  function retry(): void {
    if (!stopped) cancelRetry = clock.after(RECONNECT_MS, () => void listen());
  }

  /** Not along with what was written: commits that notify wait for each other. */
  async function ring(): Promise<void> {
    ringing = true;
    do {
      again = false;
      await database.query({ text: `NOTIFY ${channel}` }).catch(() => {});
    } while (again);
    ringing = false;
  }

  return {
    start(name) {
      channel = name;
      void listen();
    },
    ring() {
      if (ringing) again = true;
      else void ring();
    },
    async stop() {
      stopped = true;
      cancelRetry();
      if (listener !== undefined) await disconnect(listener);
    },
  };
}
