/**
 * LISTEN and NOTIFY: a node that leaves deliveries or runs without an owner, or marks a run to be cancelled,
 * rings, and every node that listens hears it. Only a matter of speed: nothing is lost where a pooler swallows
 * it, or where a connection is down, since nodes look for themselves as well.
 *
 * On a channel beside it, messages go to those nodes that want to hear them.
 */
import type { Client } from 'pg';
import type { Clock } from '../../clock.ts';
import {
  type ConnectionOptions,
  createClient,
  type Database,
  disconnect,
  type Statement,
} from './connection.ts';

export interface Bell {
  /** Listens from now on, `channel` being a plain name. */
  start(channel: string): void;
  ring(): void;
  /** Of at most 7,900 bytes each. */
  tell(messages: readonly string[]): Promise<void>;
  /** Whether this node wants to hear what is told. */
  hear(wanted: boolean): void;
  stop(): Promise<void>;
}

export interface BellOptions {
  readonly connection: ConnectionOptions;
  readonly database: Database;
  readonly clock: Clock;
  readonly onRing: () => void;
  readonly onTold: (message: string) => void;
  /** What was told before may have been missed. */
  readonly onMissed: () => void;
}

const RECONNECT_MS = 1_000;
const TIMEOUT_MS = 5_000;

const TELL: Statement = { text: 'SELECT pg_notify($1::text, message) FROM unnest($2::text[]) message' };

export function createBell(options: BellOptions): Bell {
  const { connection, database, clock, onRing, onTold, onMissed } = options;
  let channel: string;
  let hears = false;
  let listener: Client | undefined;
  let stopped = false;
  let cancelRetry = () => {};
  let ringing = false;
  let again = false;

  async function listen(): Promise<void> {
    const client = createClient({ connection, timeoutMs: TIMEOUT_MS });
    listener = client;
    client.on('notification', heard => {
      if (heard.channel === channel) onRing();
      else onTold(heard.payload ?? '');
    });
    try {
      await client.connect();
      await client.query(`LISTEN ${channel}`);
      if (hears) await client.query(`LISTEN ${messages()}`);
      client.once('end', retry);
      onRing(); // one may have been missed
      if (hears) onMissed();
    } catch {
      await disconnect(client);
      retry();
    }
  }

  const messages = () => `${channel}_told`;

  /** Where that fails there is no connection, and the next one begins with it. */
  async function heed(): Promise<void> {
    const wanted = hears;
    try {
      await listener?.query(`${wanted ? 'LISTEN' : 'UNLISTEN'} ${messages()}`);
    } catch {
      return;
    }
    if (wanted) onMissed(); // what was told before it listened
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
    async tell(told) {
      await database.query(TELL, [messages(), told]);
    },
    hear(wanted) {
      hears = wanted;
      void heed();
    },
    async stop() {
      stopped = true;
      cancelRetry();
      if (listener !== undefined) await disconnect(listener);
    },
  };
}
