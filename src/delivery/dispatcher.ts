/**
 * The dispatcher sends pending deliveries until each is settled. One comes in by hand-off, straight after the
 * call that made it was stored, or by a claim from the store: after a start, and when memory had no room.
 *
 * While it is held here, a delivery goes through these states:
 *   waiting for its time   the next attempt is due later: in `retries`, on the clock;
 *   waiting for its turn   due: in `turns`;
 *   in flight              it has a slot; the attempt is counted in the store, then sent. Where nobody waits,
 *                          a delivery has its slot when it is stored, and is counted along with that;
 *   ended                  the outcome is known and the slot given back; the outcome is being written.
 * Once that is written it waits for its time again, or is settled and leaves. It leaves as well, without an
 * outcome, when the store says that it is no longer this node's: cancelled, or taken over.
 *
 * While the store cannot write, its promises stay pending: deliveries stay in flight or ended, slots and room
 * run out, and nothing more is taken in until the store goes on. After `stop` nothing begins any more; what is
 * still pending then stays in the store, for the next start to recover and claim.
 */
import type { Body, DeliveryRef, NewDelivery, PendingDelivery, Store } from '../store/store.ts';
import { type Held, originOf } from './held.ts';
import { createReport, type DispatcherEvents, type Report } from './report.ts';
import { createRetries, type Retries } from './retries.ts';
import { add, type Guest, Room } from './room.ts';
import { type SendingOptions, type Sent, sendHeld } from './sending.ts';
import { type Turn, type TurnLimits, Turns } from './turns.ts';

export type { DispatcherEvents };

export interface DispatcherLimits extends TurnLimits {
  /** Deliveries held in memory. */
  readonly memory?: number;
  /** Bytes of their bodies held in memory. */
  readonly bodies?: number;
}

export interface DispatcherOptions extends SendingOptions {
  readonly store: Store;
  readonly limits: DispatcherLimits;
  readonly events?: DispatcherEvents;
}

/** A delivery as its call made it; who owns it and when it begins is decided here. */
export type Accepted = Omit<NewDelivery, 'owned' | 'begunAt'>;

export interface DispatcherSize {
  /** Deliveries in memory, in whatever state. */
  readonly held: number;
  /** Of those, the due ones that wait for their turn. */
  readonly waiting: number;
  /** Slots in use. */
  readonly inFlight: number;
}

export interface Dispatcher {
  /** Recovers what an earlier process left behind and begins to send. Comes before the first `accept`. */
  start(): Promise<void>;
  /**
   * Begins nothing more, and resolves when the attempts in flight have ended or after `graceMs`. A later call
   * can shorten the time left. Attempts not ended by then are left to count as interrupted.
   */
  stop(options: { graceMs: number }): Promise<void>;
  /** Resolves once the delivery is durable; sending it comes after. */
  accept(delivery: Accepted): Promise<void>;
  /** Pending deliveries of a project: in memory, in the store, or on the way there. */
  pending(projectId: string): number;
  size(): DispatcherSize;
}

/** By default: entries are light, bodies are not. */
const MEMORY = 20_000;
const BODIES = 64 * 1024 * 1024;

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new MemoryDispatcher(options);
}

class MemoryDispatcher implements Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #report: Report;
  readonly #turns: Turns<Held>;
  readonly #room: Room;
  readonly #retries: Retries<Held>;
  readonly #pending = new Map<string, number>();
  /** Attempts, from their turn until their outcome is written, and claims. */
  readonly #running = new Set<Promise<void>>();
  readonly #ended = Promise.withResolvers<void>();
  #phase: 'idle' | 'running' | 'stopping' | 'ended' = 'idle';
  /** Deliveries that are being stored and will wait for their turn: none may overtake them. */
  #arriving = 0;
  /** Whether the store may have unowned deliveries. */
  #unclaimed = true;
  #claiming = false;

  constructor(options: DispatcherOptions) {
    const { clock, limits, log, events = {} } = options;
    this.#options = options;
    this.#report = createReport({ log, events });
    this.#turns = new Turns(limits);
    this.#room = new Room({ deliveries: limits.memory ?? MEMORY, bodies: limits.bodies ?? BODIES });
    this.#retries = createRetries({ clock, due: held => this.#takeTurn([held]) });
  }

  async start(): Promise<void> {
    const { store, log } = this.#options;
    const recovered = await store.recover();
    if (recovered > 0) log.info({ recovered }, 'deliveries taken up from an earlier process');
    const { pending } = await store.backlog();
    for (const [projectId, count] of pending) add(this.#pending, projectId, count);
    if (this.#phase !== 'idle') return;
    this.#phase = 'running';
    this.#claim();
  }

  async stop({ graceMs }: { graceMs: number }): Promise<void> {
    if (graceMs <= 0) this.#end();
    else if (this.#phase !== 'ended') this.#phase = 'stopping';
    this.#retries.clear();
    const cancel = this.#options.clock.after(graceMs, () => this.#end());
    await Promise.race([Promise.allSettled(this.#running), this.#ended.promise]);
    cancel();
    this.#end();
  }

  async accept(delivery: Accepted): Promise<void> {
    const { projectId } = delivery;
    const guest = { projectId, origin: originOf(delivery.target), claimed: false, repeated: false };
    const owned = this.#phase === 'running' && this.#room.admits(guest);
    if (owned) this.#room.enter(guest);
    const counted = owned && this.#arriving === 0 && this.#turns.take(guest);
    const arriving = owned && !counted;
    if (arriving) this.#arriving += 1;
    const begun = counted ? { begunAt: this.#options.clock.now() } : {};
    add(this.#pending, projectId, 1);
    try {
      const ref = await this.#options.store.insert({ ...delivery, owned, ...begun });
      // Whoever awaits this goes on first: a caller's answer may hang on it.
      setImmediate(() => {
        if (arriving) this.#arriving -= 1;
        if (owned) this.#handOff(ref, delivery, guest, counted);
        else this.#leftUnowned();
      });
    } catch (error) {
      if (arriving) this.#arriving -= 1;
      if (counted) this.#freeSlot(guest);
      if (owned) this.#room.leave(guest);
      add(this.#pending, projectId, -1);
      throw error;
    }
  }

  pending(projectId: string): number {
    return this.#pending.get(projectId) ?? 0;
  }

  size(): DispatcherSize {
    return { held: this.#room.held, waiting: this.#turns.waiting, inFlight: this.#turns.inFlight };
  }

  /** `counted`: it has its slot already. */
  #handOff(ref: DeliveryRef, delivery: Accepted, guest: Guest & Turn, counted: boolean): void {
    if (this.#phase === 'ended') return; // the next start finds it in the store
    const { runId, app, target, createdAt, confidential, body } = delivery;
    const bytes = 'bytes' in body && this.#room.keepBody(body.bytes.length) ? body.bytes : undefined;
    const first = { round: 1, attempts: counted ? 1 : 0, trigger: 'automatic', dueAt: createdAt } as const;
    const held = { ...guest, ...first, counted, ref, runId, app, target, createdAt, confidential, bytes };
    if (counted) this.#track(this.#attempt(held));
    else this.#takeTurn([held]);
  }

  #leftUnowned(): void {
    this.#unclaimed = true;
    this.#claim();
  }

  /** Takes a batch from the store when there is room for one and the store may have some. */
  #claim(): void {
    const limit = this.#room.claimable();
    if (this.#phase !== 'running' || this.#claiming || !this.#unclaimed || limit === 0) return;
    this.#claiming = true;
    this.#unclaimed = false;
    this.#track(this.#claimBatch(limit));
  }

  async #claimBatch(limit: number): Promise<void> {
    try {
      const claimed = await this.#options.store.claim(limit);
      // Fewer than asked for does not mean that there are no more.
      if (claimed.length > 0) this.#unclaimed = true;
      this.#takeIn(claimed);
    } catch (error) {
      this.#unclaimed = true;
      throw error;
    } finally {
      this.#claiming = false;
    }
    this.#claim();
  }

  #takeIn(claimed: readonly PendingDelivery[]): void {
    const now = this.#options.clock.now();
    const due: Held[] = [];
    for (const delivery of claimed) {
      const origin = originOf(delivery.target);
      const repeated = delivery.attempts > 0;
      const held = { ...delivery, origin, repeated, claimed: true, counted: false, bytes: undefined };
      this.#room.enter(held);
      if (held.dueAt > now) this.#waitUntil(held, held.dueAt);
      else due.push(held);
    }
    this.#takeTurn(due);
  }

  #waitUntil(held: Held, dueAt: number): void {
    held.dueAt = dueAt;
    if (this.#phase === 'running') this.#retries.add(held, dueAt);
  }

  #takeTurn(due: readonly Held[]): void {
    for (const held of due) this.#turns.push(held);
    this.#serve();
  }

  /** Begins attempts while there is a slot and someone whose turn it is. */
  #serve(): void {
    while (this.#phase === 'running') {
      const held = this.#turns.next();
      if (held === undefined) return;
      this.#track(this.#attempt(held));
    }
  }

  async #attempt(held: Held): Promise<void> {
    try {
      const sent = await sendHeld(this.#options, held, this.#takeBody(held)).finally(() =>
        this.#freeSlot(held),
      );
      // Cut off by the end of the grace: as after a crash, the next start finds it interrupted.
      if (this.#phase === 'ended') return;
      if (sent === undefined) this.#leave(held);
      else await this.#conclude(held, sent);
    } catch (error) {
      // It stays pending, in the store alone, until the next start.
      this.#room.leave(held);
      throw error;
    }
  }

  /** The bytes serve one attempt; later ones, if any, read the store. */
  #takeBody(held: Held): Body | undefined {
    const { bytes } = held;
    if (bytes === undefined) return undefined;
    held.bytes = undefined;
    this.#room.releaseBody(bytes.length);
    return { bytes };
  }

  #freeSlot(turn: Turn): void {
    this.#turns.done(turn);
    this.#serve();
  }

  async #conclude(held: Held, { outcome: { timings, ...answer }, next }: Sent): Promise<void> {
    const queueMs = Math.max(0, answer.startedAt - held.dueAt);
    const result = { number: held.attempts, ...answer, timings: { queueMs, ...timings } };
    this.#report.attempt(held, result, next);
    const written = await this.#options.store.endAttempt(held.ref, result, next);
    if (written && next.state === 'pending') {
      held.repeated = true;
      this.#waitUntil(held, next.dueAt);
      return;
    }
    if (!written) this.#options.log.debug({ run_id: held.runId }, 'the delivery is no longer ours');
    else if (next.state !== 'pending') this.#report.settled(held, result, next);
    this.#leave(held);
  }

  #leave(held: Held): void {
    this.#room.leave(held);
    add(this.#pending, held.projectId, -1);
    this.#claim();
  }

  /** Work goes on by itself. Only a bug makes it reject, or a store that was closed after the end. */
  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        if (this.#phase !== 'ended') this.#options.log.error({ err: error }, 'dispatcher fault');
      })
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  #end(): void {
    this.#phase = 'ended';
    this.#ended.resolve();
  }
}
