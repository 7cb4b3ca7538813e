/**
 * A node beats: again and again it writes the database's time into its row, over a connection of its own. For
 * `valid` milliseconds from just before a beat was sent it is sure that nobody takes it for dead, since that
 * takes others `dead` milliseconds from when the beat was written. Beats that follow each other without a gap
 * make up a tenure; after a gap the next beat begins a new one.
 */
import type { Client } from 'pg';
import type { Clock } from '../../clock.ts';
import { type ConnectionOptions, createClient, disconnect, type Statement } from './connection.ts';
import { describe } from './faults.ts';
import type { Lease } from './lease.ts';
import type { Times } from './times.ts';

export interface Tenure {
  /** Undefined while there is none. */
  readonly current: number | undefined;
  /** This node's number among the owners. */
  readonly owner: number;
  /** Registers the node; rejects when that is not possible. */
  start(): Promise<void>;
  /** Beats no more. */
  stop(): Promise<void>;
}

export interface TenureOptions {
  readonly connection: ConnectionOptions;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly lease: Lease;
  readonly times: Times;
  /** Told after every beat; the fault is undefined when it succeeded. */
  readonly onBeat: (fault: string | undefined) => void;
  /** A new tenure has begun after another had ended. */
  readonly onRegained: () => void;
}

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now';

const REGISTER: Statement = {
  text: `
    INSERT INTO afterword_nodes (name, beat_at, since) VALUES ($1, clock_timestamp(), clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET beat_at = clock_timestamp(), since = clock_timestamp()
    RETURNING id, ${NOW}`,
};

/** After a gap of more than $2 milliseconds the node has been alive only since now. */
const BEAT: Statement = {
  name: 'afterword_beat',
  text: `
    UPDATE afterword_nodes SET beat_at = clock_timestamp(), since = CASE
      WHEN beat_at < clock_timestamp() - $2::float8 * interval '1 millisecond' THEN clock_timestamp()
      ELSE since END
    WHERE id = $1 RETURNING id, ${NOW}`,
};

const RETRY_MS = 100;

/** A moment by both clocks of the node: the steady one stands still while a machine sleeps. */
interface Moment {
  readonly elapsed: number;
  readonly now: number;
}

interface BeatRow {
  readonly id: number;
  readonly now: number;
}

export function createTenure(options: TenureOptions): Tenure {
  return new BeatingTenure(options);
}

class BeatingTenure implements Tenure {
  readonly #options: TenureOptions;
  #client: Client | undefined;
  #owner: number | undefined;
  #number = 0;
  /** When the last successful beat was sent. */
  #last: Moment | undefined;
  #stopped = false;
  #beating: Promise<void> | undefined;
  #endPause = () => {};

  constructor(options: TenureOptions) {
    this.#options = options;
  }

  get current(): number | undefined {
    return this.#valid() ? this.#number : undefined;
  }

  get owner(): number {
    if (this.#owner === undefined) throw new Error('the node is not registered');
    return this.#owner;
  }

  async start(): Promise<void> {
    await this.#beat();
    this.#beating = this.#goOn();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#endPause();
    await this.#beating;
    await this.#disconnect();
  }

  #valid(): boolean {
    if (this.#last === undefined) return false;
    const { clock, lease } = this.#options;
    const age = Math.max(clock.elapsed() - this.#last.elapsed, clock.now() - this.#last.now);
    return age < lease.valid;
  }

  async #goOn(): Promise<void> {
    const { clock, lease, onBeat } = this.#options;
    let pause = lease.beat;
    while (!this.#stopped) {
      await this.#pause(pause);
      if (this.#stopped) return;
      const began = clock.elapsed();
      try {
        await this.#beat();
        onBeat(undefined);
        pause = Math.max(0, lease.beat - (clock.elapsed() - began));
      } catch (error) {
        onBeat(describe(error));
        await this.#disconnect();
        pause = Math.min(RETRY_MS, lease.beat);
      }
    }
  }

  async #beat(): Promise<void> {
    const { clock, times, onRegained } = this.#options;
    const sent = { elapsed: clock.elapsed(), now: clock.now() };
    const { id, now } = (await this.#renew()) ?? (await this.#register());
    times.observe(now, sent.now, clock.now());
    const unbroken = this.#valid() && id === this.#owner;
    const regained = !unbroken && this.#last !== undefined;
    this.#owner = id;
    this.#last = sent;
    if (!unbroken) this.#number += 1;
    if (regained) onRegained();
  }

  /** Undefined when the node's row is gone. */
  async #renew(): Promise<BeatRow | undefined> {
    if (this.#owner === undefined) return undefined;
    const client = await this.#connected();
    const { rows } = await client.query<BeatRow>({
      ...BEAT,
      values: [this.#owner, this.#options.lease.valid],
    });
    return rows[0];
  }

  async #register(): Promise<BeatRow> {
    const client = await this.#connected();
    const { rows } = await client.query<BeatRow>({ ...REGISTER, values: [this.#options.nodeId] });
    return rows[0]!;
  }

  async #connected(): Promise<Client> {
    const { connection, lease } = this.#options;
    if (this.#client === undefined) {
      // An answer that comes later than this comes too late for the tenure.
      const client = createClient({ connection, timeoutMs: lease.valid - lease.beat });
      this.#client = client;
      await client.connect();
    }
    return this.#client;
  }

  async #disconnect(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) await disconnect(client);
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
