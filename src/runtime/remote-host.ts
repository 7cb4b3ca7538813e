/**
 * Places in the processes of apps that another process of the service runs: asked for over a port, used
 * through connections of its own.
 */
import type { Pool } from 'undici';
import type { Clock } from '../clock.ts';
import type { AppConfig } from '../config/config.ts';
import { Problem } from '../errors.ts';
import type { Port } from '../port.ts';
import type { HostedState } from './app-state.ts';
import { type Door, openPool } from './door.ts';
import type { Lessor } from './host.ts';
import type { Lease } from './hosted-app.ts';
import type { LeaseReply, LeaseRequest } from './leasing.ts';

export interface RemoteHostOptions {
  readonly port: Port<LeaseRequest, LeaseReply>;
  readonly appTimeout: number;
  readonly clock: Clock;
}

export interface RemoteHost extends Lessor {
  /** How the apps stand, as the other process tells. */
  states(): Promise<readonly HostedState[]>;
  stop(): Promise<void>;
}

/** Between two looks for waiting calls that nobody wants any more. */
const LOOK_MS = 100;
/** A pool that has had no call for this long may go, when there is a new one. */
const SPARE_MS = 10_000;

interface Waiting {
  wanted: (() => boolean) | undefined;
  readonly granted: PromiseWithResolvers<Lease>;
}

interface Connections {
  readonly pool: Pool;
  calls: number;
  freeSince: number;
}

export function createRemoteHost(options: RemoteHostOptions): RemoteHost {
  const places = new LeasedPlaces(options);
  options.port.listen(reply => places.hear(reply));
  return places;
}

class LeasedPlaces implements RemoteHost {
  readonly #options: RemoteHostOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #crashes = new Map<number, (crashed: boolean) => void>();
  readonly #questions = new Map<number, (states: readonly HostedState[]) => void>();
  readonly #connections = new Map<string, Connections>();
  #last = 0;
  #cancelLook: (() => void) | undefined;

  constructor(options: RemoteHostOptions) {
    this.#options = options;
  }

  lease({ projectId, name }: AppConfig, wanted: () => boolean): Promise<Lease> {
    const id = ++this.#last;
    const granted = Promise.withResolvers<Lease>();
    this.#waiting.set(id, { wanted, granted });
    this.#options.port.send({ type: 'lease', id, projectId, app: name });
    this.#cancelLook ??= this.#options.clock.after(LOOK_MS, () => this.#look());
    return granted.promise;
  }

  states(): Promise<readonly HostedState[]> {
    const id = ++this.#last;
    return new Promise(resolve => {
      this.#questions.set(id, resolve);
      this.#options.port.send({ type: 'states', id });
    });
  }

  async stop(): Promise<void> {
    this.#cancelLook?.();
    await Promise.all([...this.#connections.values()].map(({ pool }) => pool.destroy()));
  }

  hear(reply: LeaseReply): void {
    const { id } = reply;
    if (reply.type === 'crashed') {
      this.#crashes.get(id)?.(reply.crashed);
      this.#crashes.delete(id);
      return;
    }
    if (reply.type === 'states') {
      this.#questions.get(id)?.(reply.states);
      this.#questions.delete(id);
      return;
    }
    const { granted } = this.#waiting.get(id)!;
    this.#waiting.delete(id);
    if (reply.type === 'granted') granted.resolve(this.#enter(id, reply.door));
    else granted.reject(new Problem(reply.problem.code, reply.problem.detail, reply.problem.headers));
  }

  #enter(id: number, door: Door): Lease {
    const { port, clock } = this.#options;
    const connections = this.#connectionsTo(door);
    connections.calls += 1;
    let over = false;
    return {
      pool: connections.pool,
      done: () => {
        if (over) return;
        over = true;
        connections.calls -= 1;
        connections.freeSince = clock.elapsed();
        port.send({ type: 'done', id });
      },
      timedOut: () => port.send({ type: 'timed_out', id }),
      crashed: () =>
        new Promise(resolve => {
          this.#crashes.set(id, resolve);
          port.send({ type: 'crashed', id });
        }),
    };
  }

  #connectionsTo(door: Door): Connections {
    const name = 'socket' in door ? door.socket : String(door.port);
    let connections = this.#connections.get(name);
    if (connections === undefined) {
      this.#dropSpare();
      const pool = openPool(door, this.#options.appTimeout);
      connections = { pool, calls: 0, freeSince: 0 };
      this.#connections.set(name, connections);
    }
    return connections;
  }

  /** A process that has been replaced leaves a pool behind that nobody will ask for again. */
  #dropSpare(): void {
    const before = this.#options.clock.elapsed() - SPARE_MS;
    for (const [name, { pool, calls, freeSince }] of this.#connections) {
      if (calls > 0 || freeSince > before) continue;
      this.#connections.delete(name);
      pool.destroy().catch(() => {}); // it has no call
    }
  }

  /** Whether a call is still wanted can only be asked, and only here. */
  #look(): void {
    for (const [id, waiting] of this.#waiting) {
      if (waiting.wanted === undefined || waiting.wanted()) continue;
      waiting.wanted = undefined;
      this.#options.port.send({ type: 'unwanted', id });
    }
    const again = this.#waiting.size > 0;
    this.#cancelLook = again ? this.#options.clock.after(LOOK_MS, () => this.#look()) : undefined;
  }
}
