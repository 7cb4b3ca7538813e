/**
 * One process of an app: started, ready once it can be reached, then given calls until it is retired or
 * ends by itself. A replica is never started twice; whoever wants another makes one.
 */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import type { Pool } from 'undici';
import type { Clock } from '../clock.ts';
import type { ProcessConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import { canConnect, type Door, openPool } from './door.ts';
import { type Exit, type GuardedProcess, spawnGuarded } from './guarded-process.ts';
import { logOutput } from './output.ts';
import { programOf } from './program.ts';

export interface ReplicaOptions {
  readonly config: ProcessConfig;
  /** Which of the app's replicas, from 0. */
  readonly index: number;
  /** Path of a Unix socket that nobody else uses. */
  readonly socket: string;
  readonly appTimeout: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told each line that it prints. */
  readonly onLine?: (text: string) => void;
}

/** The process could not be started, ended, or was not ready in time, before it took a call. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
}

const START_TIMEOUT_MS = 60_000;
const PROBE_MS = 20;
/** How long a look at a server's health may take. */
const HEALTH_MS = 5_000;
/** Between the request to end and the end by force. */
const TERMINATE_MS = 5_000;

export class Replica {
  readonly #options: ReplicaOptions;
  #process: GuardedProcess | undefined;
  #door: Door | undefined;
  #pool: Pool | undefined;
  #exit: Exit | undefined;
  #stopping: Promise<void> | undefined;
  /** Calls that it has now. */
  active = 0;

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  /** Where its calls go, once it is ready. */
  get pool(): Pool {
    return this.#pool!;
  }

  /** The same place, for those who have connections of their own. */
  get door(): Door {
    return this.#door!;
  }

  /** Of its process, once there is one. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** How it ended, once it has. */
  async exited(): Promise<Exit> {
    return this.#process!.exited;
  }

  /** Resolves when it is ready; rejects with a StartFailure, and then no process is left. */
  async start(): Promise<void> {
    const { socket, log, onLine, appTimeout } = this.#options;
    const door = await this.#spawn();
    const child = this.#process!;
    logOutput(child.stdout, 'stdout', log, onLine);
    logOutput(child.stderr, 'stderr', log, onLine);
    void child.exited.then(exit => {
      this.#exit = exit;
      rm(socket, { force: true }).catch(() => {}); // its folder goes in the end
    });
    this.#door = door;
    this.#pool = openPool(door, appTimeout);
    await this.#untilReady(door);
  }

  /** Asks it to end, and ends it by force where it does not. A call that it still has is lost. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    await this.#pool?.destroy();
    child.terminate();
    const cancel = this.#options.clock.after(TERMINATE_MS, () => child.kill());
    await child.exited;
    cancel();
  }

  async #spawn(): Promise<Door> {
    const { config, index, socket } = this.#options;
    try {
      const door = await doorFor(config, index, socket);
      if (this.#stopping !== undefined) throw new StartFailure('it is not wanted any more');
      if (!existsSync(config.cwd)) throw new StartFailure('its working directory is not there');
      const { command, env } = programOf(config, door);
      this.#process = spawnGuarded({ command, cwd: config.cwd, env: { ...config.env, ...env } });
      return door;
    } catch (error) {
      // Whatever it is, such as an environment that is too large: it concerns this app alone.
      throw error instanceof StartFailure ? error : new StartFailure((error as Error).message);
    }
  }

  async #untilReady(door: Door): Promise<void> {
    const { clock, config } = this.#options;
    const deadline = clock.elapsed() + START_TIMEOUT_MS;
    const { program } = config;
    const health = program.kind === 'command' ? program.health : undefined;
    for (;;) {
      if (this.#exit !== undefined)
        throw new StartFailure(`its process ended with ${describeExit(this.#exit)}`);
      if (await (health === undefined ? canConnect(door) : this.#isHealthy(health))) return;
      if (clock.elapsed() > deadline) {
        await this.stop();
        throw new StartFailure(`it was not ready within ${START_TIMEOUT_MS / 1000} s`);
      }
      await new Promise<void>(resolve => clock.after(PROBE_MS, resolve));
    }
  }

  async #isHealthy(path: string): Promise<boolean> {
    try {
      const timeouts = { headersTimeout: HEALTH_MS, bodyTimeout: HEALTH_MS };
      const { statusCode, body } = await this.pool.request({ method: 'GET', path, ...timeouts });
      await body.dump();
      return statusCode >= 200 && statusCode < 300;
    } catch {
      return false; // not yet
    }
  }
}

/** What shells mean by these codes (POSIX, 2.8.2). */
const SHELL_CODES: Readonly<Record<number, string>> = {
  126: ': its command cannot be executed',
  127: ': there is no such command',
};

export function describeExit(exit: Exit): string {
  return 'signal' in exit ? exit.signal : `exit code ${exit.code}${SHELL_CODES[exit.code] ?? ''}`;
}

async function doorFor(config: ProcessConfig, index: number, socket: string): Promise<Door> {
  const { program } = config;
  if (program.kind !== 'command') return { socket };
  if (program.port === undefined) return { port: await freePort() };
  const door = { port: program.port + index };
  // Whoever has it would be taken for the app.
  if (await canConnect(door)) throw new StartFailure(`its port ${door.port} is taken by another process`);
  return door;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
