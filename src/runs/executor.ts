/**
 * Carries runs out: claims those of the apps that have room, oldest first, and sees each to its end.
 *
 * The queue is in the store, and what is held here is under way: as many runs of an app as it takes at once.
 * Each app has its own, so that none waits for another's. An app is asked for when a run of it may wait: after
 * the start, when one was accepted here or the store says that there may be, and when one has ended here.
 */
import type { AppConfig, Config } from '../config/config.ts';
import { Problem } from '../errors.ts';
import type { Ways } from '../exchange/ways.ts';
import type { Logger } from '../log.ts';
import type { ClaimedRun, RunRef, WantedRuns } from '../store/runs.ts';
import type { Store } from '../store/store.ts';
import { refusalOf } from './ending.ts';
import { Execution, type ExecutionDeps } from './execution.ts';

export interface ExecutorOptions extends ExecutionDeps {
  readonly store: Store;
  readonly config: Pick<Config, 'apps' | 'async'>;
  readonly ways: Ways;
  readonly log: Logger;
}

export interface Executor {
  /** How many runs are held. */
  readonly held: number;
  start(): void;
  /** Runs may wait: of this app, or of any. */
  expect(app?: AppConfig): void;
  /** Runs that are held here may be marked to be cancelled. */
  lookForCancelled(): void;
  /**
   * Claims nothing more, and resolves when what is under way has ended or after `graceMs`; what has not by then
   * is given up, for the store to free.
   */
  stop(options: { graceMs: number }): Promise<void>;
}

/** Between two looks for runs whose app nobody has any more. */
const STRAYS_MS = 60_000;
const STRAYS = 100;
/** What is given up has this long to be written. */
const GIVE_UP_MS = 3_000;

export function createExecutor(options: ExecutorOptions): Executor {
  return new StoreExecutor(options);
}

/** How many runs of an app may be under way. Processes that run here are each node's own. */
function limitOf({ place }: AppConfig): Pick<WantedRuns, 'limit' | 'each'> {
  if (place.kind === 'url') return { limit: place.concurrency, each: false };
  const { replicas, concurrency } = place.process;
  return { limit: replicas * concurrency, each: true };
}

class StoreExecutor implements Executor {
  readonly #options: ExecutorOptions;
  readonly #apps: readonly AppConfig[];
  /** Those that runs may wait for, to be asked for when they have room. */
  readonly #expected = new Set<AppConfig>();
  /** All are to be asked for, room or not: a run that is to be cancelled needs none. */
  #askForAll = false;
  readonly #held = new Map<RunRef, Execution>();
  readonly #heldOf = new Map<AppConfig, number>();
  /** Runs under way, and claims. */
  readonly #work = new Set<Promise<void>>();
  #claiming = false;
  #running = false;
  #cancelStrays = (): void => {};

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#apps = [...options.config.apps.values()].flatMap(ofProject => [...ofProject.values()]);
  }

  get held(): number {
    return this.#held.size;
  }

  start(): void {
    this.#running = true;
    this.#options.store.watch(() => {
      this.expect();
      this.lookForCancelled();
    });
    this.expect();
    this.#lookForStrays();
  }

  expect(app?: AppConfig): void {
    if (!this.#running) return;
    if (app === undefined) this.#askForAll = true;
    else this.#expected.add(app);
    this.#look();
  }

  lookForCancelled(): void {
    if (this.#held.size > 0) this.#track(this.#cancelMarked());
  }

  async stop({ graceMs }: { graceMs: number }): Promise<void> {
    this.#running = false;
    this.#cancelStrays();
    if (await this.#ends(graceMs)) return;
    for (const execution of this.#held.values()) execution.giveUp();
    await this.#ends(GIVE_UP_MS);
  }

  /** Whether everything ends within this time. */
  async #ends(ms: number): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>();
    const cancel = this.#options.clock.after(ms, () => resolve(false));
    const ended = await Promise.race([Promise.allSettled(this.#work).then(() => true), late]);
    cancel();
    return ended;
  }

  #look(): void {
    // Without a tenure, what is claimed might be gone again at once.
    if (!this.#running || this.#claiming || this.#options.store.tenure === undefined) return;
    const wanted = this.#askForAll ? this.#apps : [...this.#expected].filter(app => this.#hasRoom(app));
    if (wanted.length === 0) return;
    this.#askForAll = false;
    for (const app of wanted) this.#expected.delete(app);
    this.#claiming = true;
    this.#track(this.#claim(wanted));
  }

  #hasRoom(app: AppConfig): boolean {
    return (this.#heldOf.get(app) ?? 0) < limitOf(app).limit;
  }

  async #claim(apps: readonly AppConfig[]): Promise<void> {
    const wanted = apps.map(app => ({ projectId: app.projectId, app: app.name, ...limitOf(app) }));
    try {
      this.#takeAll(await this.#options.store.runs.claim(wanted));
    } catch (error) {
      for (const app of apps) this.#expected.add(app);
      throw error;
    } finally {
      this.#claiming = false;
    }
    this.#look();
  }

  /** What comes after the stop is for the store to free. */
  #takeAll(runs: readonly ClaimedRun[]): void {
    if (this.#running) for (const run of runs) this.#take(run);
  }

  #take(run: ClaimedRun): void {
    const { config } = this.#options;
    const app = config.apps.get(run.projectId)?.get(run.app);
    const execution = new Execution(this.#options, run);
    this.#held.set(run.ref, execution);
    if (app !== undefined) this.#count(app, 1);
    const work = this.#see(execution, app).finally(() => {
      this.#held.delete(run.ref);
      if (app === undefined) return;
      this.#count(app, -1);
      this.expect(app);
    });
    this.#track(work);
  }

  /** To its end. */
  async #see(execution: Execution, app: AppConfig | undefined): Promise<void> {
    const { config, ways } = this.#options;
    const refusal =
      refusalOf(execution.run, config.async.maxStarts) ?? (app === undefined && new Problem('app_not_found'));
    if (refusal) await execution.refuse(refusal);
    else await execution.carryOut({ app: app!, way: ways.to(app!) });
  }

  #count(app: AppConfig, by: 1 | -1): void {
    this.#heldOf.set(app, (this.#heldOf.get(app) ?? 0) + by);
  }

  async #cancelMarked(): Promise<void> {
    for (const ref of await this.#options.store.runs.toCancel()) this.#held.get(ref)?.cancel();
  }

  /** A run of an app that is in no configuration any more is waited for as one of an app that is down is. */
  #lookForStrays(): void {
    this.#track(this.#claimStrays());
    this.#cancelStrays = this.#options.clock.after(STRAYS_MS, () => this.#lookForStrays());
  }

  async #claimStrays(): Promise<void> {
    const { store, clock, timeout } = this.#options;
    const known = this.#apps.map(({ projectId, name: app }) => ({ projectId, app }));
    const strays = await store.runs.claimStrays(known, clock.now() - timeout, STRAYS);
    this.#takeAll(strays);
  }

  /** Work goes on by itself. Only a bug makes it reject, or a store that was closed after the end. */
  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        if (this.#running) this.#options.log.error({ err: error }, 'a fault in carrying out runs');
      })
      .finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }
}
