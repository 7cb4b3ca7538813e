/**
 * An app whose processes run here: keeps its replicas alive, gives each call a place in one of them, and
 * makes calls wait, in order and up to a bound, while all places are taken or none is ready.
 *
 * A replica is starting, then ready, then perhaps retired. One that ends is replaced, after pauses that grow
 * until one has stayed up for a while. One that let a call run into its time limit, or whose files have
 * changed, is retired: it gets no more calls, a new one takes its place (at once, or when the port that it
 * was told to use is free), and it is ended when its other calls are done. Calls that wait while a start
 * fails, and no other replica is ready, are told so.
 */
import { join } from 'node:path';
import type { Pool } from 'undici';
import type { Clock } from '../clock.ts';
import type { ProcessConfig } from '../config/config.ts';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type HostedState, phaseOf, type ReplicaState } from './app-state.ts';
import type { Door } from './door.ts';
import { LastLines } from './output.ts';
import { describeExit, Replica, StartFailure } from './replica.ts';

/** A call's place in a process. */
export interface Lease {
  readonly pool: Pool;
  /** The call is over: its place is free. */
  done(): void;
  /** The call ran into its time limit: the process that let it is retired. */
  timedOut(): void;
  /** Whether the process has ended, or does so within a moment: a lost connection is seen before its cause. */
  readonly crashed?: () => Promise<boolean>;
}

/** A place in a process that runs here. */
export interface HostedLease extends Lease {
  readonly door: Door;
  readonly crashed: () => Promise<boolean>;
}

export interface HostedAppOptions {
  readonly config: ProcessConfig;
  /** For Unix sockets, whose paths are limited to about a hundred bytes. */
  readonly socketDir: string;
  readonly appTimeout: number;
  readonly clock: Clock;
  readonly log: Logger;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A replica that has stayed up for this long was a good start. */
const SETTLED_MS = 10_000;
const CRASH_NOTICE_MS = 1_000;

interface Waiting {
  /** Whether somebody still waits. */
  wanted(): boolean;
  grant(lease: HostedLease): void;
  refuse(problem: Problem): void;
}

interface Member {
  readonly replica: Replica;
  readonly index: number;
  readonly startedAt: number;
  phase: 'starting' | 'ready' | 'retired';
  /** Settles once it is to be replaced: it has ended, or is retired. */
  readonly over: PromiseWithResolvers<void>;
}

export class HostedApp {
  readonly #options: HostedAppOptions;
  /** All whose processes may still be there. */
  readonly #members = new Set<Member>();
  /** Processes on their way out. */
  readonly #leaving = new Set<Promise<void>>();
  #waiting: Waiting[] = [];
  /** Processes that each replica has had. */
  readonly #starts = new Map<number, number>();
  readonly #lines = new LastLines();
  #keepers: Promise<void>[] | undefined;
  #endPauses = new Set<() => void>();
  #stopped = false;

  constructor(options: HostedAppOptions) {
    this.#options = options;
  }

  /** Begins to keep its replicas up; does nothing the second time. */
  start(): void {
    const { replicas } = this.#options.config;
    this.#keepers ??= Array.from({ length: replicas }, (_, index) => this.#keep(index));
  }

  /** A place at once, or later while it is `wanted`; throws a Problem when too many wait already. */
  lease(wanted: () => boolean): HostedLease | Promise<HostedLease> {
    if (this.#stopped) throw new Problem('shutting_down');
    this.start();
    const free = this.#waiting.length === 0 ? this.#freest() : undefined;
    if (free !== undefined) return this.#occupy(free);
    const { queue } = this.#options.config;
    if (this.#waiting.length >= queue) this.#dropUnwanted();
    if (this.#waiting.length >= queue) throw new Problem('app_busy', undefined, ['Retry-After', '1']);
    return this.#wait(wanted);
  }

  /** Callers who have gone make room for others. */
  #dropUnwanted(): void {
    const unwanted = this.#waiting.filter(each => !each.wanted());
    this.#waiting = this.#waiting.filter(each => !unwanted.includes(each));
    for (const waiting of unwanted) waiting.refuse(new Problem('app_busy'));
  }

  /** For as long as the app may take to answer: a place that comes later would be of no use. */
  async #wait(wanted: () => boolean): Promise<HostedLease> {
    const { clock, appTimeout } = this.#options;
    const { promise, resolve: grant, reject: refuse } = Promise.withResolvers<HostedLease>();
    const waiting = { wanted, grant, refuse };
    this.#waiting.push(waiting);
    const cancel = clock.after(appTimeout, () => {
      this.#waiting = this.#waiting.filter(each => each !== waiting);
      refuse(new Problem('app_timeout', 'The app had no place for the call in time'));
    });
    return promise.finally(cancel);
  }

  /** Puts new processes in the place of all present ones, which end when their calls have. */
  reload(): void {
    for (const member of this.#members) this.#retire(member);
    for (const end of this.#endPauses) end();
  }

  /** Ends all processes. Calls are expected to be over; those that are not fail. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#refuseAll(new Problem('shutting_down'));
    for (const end of this.#endPauses) end();
    for (const member of this.#members) {
      this.#retire(member);
      this.#dismiss(member.replica);
    }
    await Promise.all(this.#keepers ?? []);
    await Promise.all(this.#leaving);
  }

  state(): Omit<HostedState, 'projectId' | 'app'> {
    const replicas = [...this.#starts.keys()].sort((a, b) => a - b).flatMap(index => this.#replicas(index));
    return { phase: phaseOf(replicas), replicas, waiting: this.#waiting.length, lines: this.#lines.all };
  }

  /** One that is retired, and the one that has taken its place, are both there for a while. */
  #replicas(index: number): ReplicaState[] {
    const restarts = this.#starts.get(index)! - 1;
    const members = [...this.#members].filter(member => member.index === index);
    if (members.length === 0) return [{ index, phase: 'pausing', restarts, active: 0 }];
    return members.map(({ phase, startedAt, replica: { pid, active } }) => ({
      index,
      phase,
      ...(pid !== undefined && { pid }),
      restarts,
      startedAt,
      active,
    }));
  }

  /** Keeps one replica up until the app is stopped. */
  async #keep(index: number): Promise<void> {
    const { clock, log } = this.#options;
    let pause = 0;
    while (!this.#stopped) {
      const began = clock.elapsed();
      const ending = await this.#runOne(index);
      if (ending === 'retired' || this.#stopped) continue;
      log.error({ replica: index }, `the app ${ending}`);
      const settled = clock.elapsed() - began > SETTLED_MS;
      pause = settled ? FIRST_PAUSE_MS : Math.min(Math.max(pause * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
      await this.#pause(pause);
    }
  }

  /** One replica, from its start until it is to be replaced; tells why. */
  async #runOne(index: number): Promise<string> {
    const replica = this.#create(index);
    const startedAt = this.#options.clock.now();
    const over = Promise.withResolvers<void>();
    const member: Member = { replica, index, startedAt, phase: 'starting', over };
    this.#starts.set(index, (this.#starts.get(index) ?? 0) + 1);
    this.#members.add(member);
    try {
      await replica.start();
    } catch (error) {
      if (!(error instanceof StartFailure)) throw error;
      this.#members.delete(member);
      if (isRetired(member)) return 'retired';
      const reason = `could not be started: ${error.message}`;
      if (!this.#anyReady()) this.#refuseAll(new Problem('app_unreachable', `The app ${reason}`));
      return reason;
    }
    void replica.exited().then(() => this.#lose(member));
    if (!isRetired(member)) this.#enlist(member, index);
    await member.over.promise;
    if (!isRetired(member)) return `ended with ${describeExit(await replica.exited())}`;
    if (this.#hasPort()) await replica.exited();
    return 'retired';
  }

  #enlist(member: Member, index: number): void {
    member.phase = 'ready';
    this.#options.log.info({ replica: index }, 'the app is ready');
    this.#serve();
  }

  /** Told which port to use, the next one cannot be started before the last has ended. */
  #hasPort(): boolean {
    const { program } = this.#options.config;
    return program.kind === 'command' && program.port !== undefined;
  }

  #anyReady(): boolean {
    return [...this.#members].some(({ phase }) => phase === 'ready');
  }

  #create(index: number): Replica {
    const { config, socketDir, appTimeout, clock, log } = this.#options;
    const socket = join(socketDir, socketName());
    const own = log.child({ replica: index });
    const onLine = (text: string): void => this.#lines.add({ at: clock.now(), text });
    return new Replica({ config, index, socket, appTimeout, clock, log: own, onLine });
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const end = (): void => {
        cancel();
        this.#endPauses.delete(end);
        resolve();
      };
      const cancel = this.#options.clock.after(ms, end);
      this.#endPauses.add(end);
    });
  }

  /** The ready replica with the most room, if any has some. */
  #freest(): Member | undefined {
    let freest: Member | undefined;
    for (const member of this.#members) {
      if (member.phase !== 'ready') continue;
      if (freest === undefined || member.replica.active < freest.replica.active) freest = member;
    }
    return freest !== undefined && freest.replica.active < this.#options.config.concurrency
      ? freest
      : undefined;
  }

  /** Gives places to those who wait, in order, while there are any. */
  #serve(): void {
    while (this.#waiting.length > 0) {
      const free = this.#freest();
      if (free === undefined) return;
      this.#waiting.shift()!.grant(this.#occupy(free));
    }
  }

  #occupy(member: Member): HostedLease {
    const { replica } = member;
    replica.active++;
    let over = false;
    return {
      pool: replica.pool,
      door: replica.door,
      done: () => {
        if (over) return;
        over = true;
        replica.active--;
        if (isRetired(member) && replica.active === 0) this.#dismiss(replica);
        this.#serve();
      },
      timedOut: () => {
        if (this.#members.has(member)) this.#retire(member);
      },
      crashed: () => this.#endsSoon(replica),
    };
  }

  async #endsSoon(replica: Replica): Promise<boolean> {
    let cancel = (): void => {};
    const notice = new Promise<boolean>(resolve => {
      cancel = this.#options.clock.after(CRASH_NOTICE_MS, () => resolve(false));
    });
    const crashed = await Promise.race([replica.exited().then(() => true), notice]);
    cancel();
    return crashed;
  }

  #retire(member: Member): void {
    if (isRetired(member)) return;
    member.phase = 'retired';
    member.over.resolve();
    if (member.replica.active === 0) this.#dismiss(member.replica);
  }

  #lose(member: Member): void {
    this.#members.delete(member);
    member.over.resolve();
  }

  #dismiss(replica: Replica): void {
    const leaving = replica.stop().finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  #refuseAll(problem: Problem): void {
    for (const waiting of this.#waiting.splice(0)) waiting.refuse(problem);
  }
}

function isRetired({ phase }: Member): boolean {
  return phase === 'retired';
}

let sockets = 0;

/** Unique in this process, whose directory it is. */
function socketName(): string {
  sockets += 1;
  return `${sockets}.sock`;
}
