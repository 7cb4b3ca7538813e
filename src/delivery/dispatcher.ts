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
 * outcome, when the store says that it is no longer this node's: cancelled, or taken over. An attempt that was
 * counted but withheld is taken back, and the delivery waits again.
 *
 * While the store has no tenure, no attempt begins: what is due waits for its turn, and new deliveries are
 * stored for whoever claims them. What is held stays, since it may still be ours; where it is not, the store
 * says so at the next step. It may also come back by a claim, after another node took it over and left it:
 * then the new entry counts, and the old one leaves in silence.
 *
 * While the store cannot write, its promises stay pending: deliveries stay in flight or ended, slots and room
 * run out, and nothing more is taken in until the store goes on. After `stop` nothing begins any more; what is
 * still pending then is handed back to the store, for the next start or another node to claim.
 */
import type { Body, DeliveryRef, NewDelivery, PendingDelivery, Store } from '../store/store.ts';
import type { Withheld } from './attempt.ts';
import { type Claims, createClaims } from './claims.ts';
import { handBack } from './hand-back.ts';
import { type Held, heldByClaim, heldByHandOff, originOf } from './held.ts';
import type { Pending } from './pending.ts';
import { createReport, type DispatcherEvents, type Report } from './report.ts';
import { createRetries, type Retries } from './retries.ts';
import { type Guest, Room } from './room.ts';
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
  /** Counts what is pending; read anew at the start. */
  readonly pending: Pending;
  readonly events?: DispatcherEvents;
  /** False: this node only stores deliveries, and others send them. */
  readonly sends?: boolean;
  /** True: other nodes use the store too, and their deliveries count as pending here as well. */
  readonly shared?: boolean;
}

/** A delivery as its call made it; who owns it and when it begins is decided here. */
export type Accepted = Omit<NewDelivery, 'owned' | 'begunAt'>;

/** Makes a delivery durable. Undefined: it is not to be made any more. */
export type Insert = (delivery: NewDelivery) => Promise<DeliveryRef | undefined>;

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
  /**
   * Gives the store back what is still held. Comes after `stop`, and after the sender is closed: what is given
   * back may be sent by others at once. Never rejects, and takes a few seconds at most.
   */
  handBack(): Promise<void>;
  /** Resolves once the delivery is durable, by `insert` where that does more than the store's own. */
  accept(delivery: Accepted, insert?: Insert): Promise<void>;
  size(): DispatcherSize;
}

/** By default: entries are light, bodies are not. */
const MEMORY = 20_000;
const BODIES = 64 * 1024 * 1024;

/** How long a delivery waits whose body cannot be read, in milliseconds. */
const UNREADABLE_MS = 1_000;

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new MemoryDispatcher(options);
}

class MemoryDispatcher implements Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #report: Report;
  readonly #turns: Turns<Held>;
  readonly #room: Room;
  readonly #retries: Retries<Held>;
  readonly #claims: Claims;
  readonly #pending: Pending;
  readonly #sends: boolean;
  /** What is held and stored, each delivery once: an entry that is not here was replaced by a later claim. */
  readonly #held = new Map<DeliveryRef, Held>();
  /** Attempts, from their turn until their outcome is written, and claims. */
  readonly #running = new Set<Promise<void>>();
  readonly #ended = Promise.withResolvers<void>();
  #phase: 'idle' | 'running' | 'stopping' | 'ended' = 'idle';
  /** Deliveries that are being stored and will wait for their turn: none may overtake them. */
  #arriving = 0;
  #handedBack = false;

  constructor(options: DispatcherOptions) {
    const { store, clock, limits, log, pending, events = {}, sends = true } = options;
    this.#options = options;
    this.#sends = sends;
    this.#pending = pending;
    this.#claims = createClaims({
      store,
      room: () => (sends && this.#phase === 'running' ? this.#room.claimable() : 0),
      takeIn: claimed => this.#takeIn(claimed),
      track: work => this.#track(work),
    });
    this.#report = createReport({ log, events });
    this.#turns = new Turns(limits);
    this.#room = new Room({ deliveries: limits.memory ?? MEMORY, bodies: limits.bodies ?? BODIES });
    this.#retries = createRetries({ clock, due: held => this.#takeTurn([held]) });
  }

  async start(): Promise<void> {
    if (this.#sends) await this.#recover();
    await this.#pending.read();
    if (this.#phase !== 'idle') return;
    this.#phase = 'running';
    if (this.#options.shared === true) this.#pending.keepFresh();
    this.#claims.look();
  }

  async stop({ graceMs }: { graceMs: number }): Promise<void> {
    if (graceMs <= 0) this.#end();
    else if (this.#phase !== 'ended') this.#phase = 'stopping';
    this.#retries.clear();
    this.#pending.stop();
    const cancel = this.#options.clock.after(graceMs, () => this.#end());
    await Promise.race([Promise.allSettled(this.#running), this.#ended.promise]);
    cancel();
    this.#end();
  }

  async handBack(): Promise<void> {
    if (this.#sends) this.#handedBack = await handBack(this.#options);
  }

  async accept(delivery: Accepted, insert: Insert = each => this.#options.store.insert(each)): Promise<void> {
    const { store, clock } = this.#options;
    const { projectId } = delivery;
    // From before the attempt is counted, which the insert may do.
    const tenure = this.#sends && this.#phase === 'running' ? store.tenure : undefined;
    const guest = { projectId, origin: originOf(delivery.target), claimed: false, repeated: false };
    const owned = tenure !== undefined && this.#room.admits(guest);
    if (owned) this.#room.enter(guest);
    const counted = owned && this.#arriving === 0 && this.#turns.take(guest) ? tenure : undefined;
    const arriving = owned && counted === undefined;
    if (arriving) this.#arriving += 1;
    const begun = counted === undefined ? {} : { begunAt: clock.now() };
    const { mark } = this.#pending;
    this.#pending.change(projectId, 1, mark);
    const undo = (): void => {
      if (arriving) this.#arriving -= 1;
      if (counted !== undefined) this.#freeSlot(guest);
      if (owned) this.#room.leave(guest);
      this.#pending.change(projectId, -1, mark);
    };
    try {
      const ref = await insert({ ...delivery, owned, ...begun });
      if (ref === undefined) {
        undo();
        return;
      }
      this.#options.events?.made?.(delivery);
      // Whoever awaits this goes on first: a caller's answer may hang on it.
      setImmediate(() => {
        if (arriving) this.#arriving -= 1;
        if (owned) this.#handOff(ref, delivery, guest, counted);
        else this.#claims.expect();
      });
    } catch (error) {
      undo();
      this.#options.events?.storeFailed?.('insert_delivery');
      throw error;
    }
  }

  size(): DispatcherSize {
    if (this.#handedBack) return { held: 0, waiting: 0, inFlight: 0 };
    return { held: this.#room.held, waiting: this.#turns.waiting, inFlight: this.#turns.inFlight };
  }

  async #recover(): Promise<void> {
    const { store, log } = this.#options;
    store.watch(() => this.#wake());
    const recovered = await store.recover();
    if (recovered > 0) log.info({ recovered }, 'deliveries taken up from an earlier process');
  }

  /** The store has deliveries that another node left, or its tenure back. */
  #wake(): void {
    this.#claims.expect();
    this.#serve();
  }

  /** `counted`: the tenure in which its attempt was counted; it has its slot already then. */
  #handOff(ref: DeliveryRef, delivery: Accepted, guest: Guest & Turn, counted: number | undefined): void {
    if (this.#phase === 'ended') return; // the next start finds it in the store
    const { body } = delivery;
    const bytes = 'bytes' in body && this.#room.keepBody(body.bytes.length) ? body.bytes : undefined;
    const held = heldByHandOff({ ref, delivery, guest, bytes, counted: counted !== undefined });
    // A claim that was faster has its latest state: it was taken over and left again before the store answered.
    if (!this.#held.has(ref)) this.#held.set(ref, held);
    if (counted === undefined) this.#takeTurn([held]);
    else this.#track(this.#attempt(held, counted));
  }

  #takeIn(claimed: readonly PendingDelivery[]): void {
    const now = this.#options.clock.now();
    const due: Held[] = [];
    for (const delivery of claimed) {
      const held = heldByClaim(delivery);
      this.#room.enter(held);
      this.#held.set(held.ref, held);
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
      const { tenure } = this.#options.store;
      const held = tenure === undefined ? undefined : this.#turns.next();
      if (tenure === undefined || held === undefined) return;
      this.#track(this.#attempt(held, tenure));
    }
  }

  async #attempt(held: Held, tenure: number): Promise<void> {
    const { mark } = this.#pending;
    try {
      const sent = await this.#send(held, tenure).finally(() => this.#freeSlot(held));
      // Cut off by the end of the grace: as after a crash, it counts as interrupted.
      if (this.#phase === 'ended') return;
      if (sent === undefined || this.#isReplaced(held)) this.#leave(held, mark);
      else if ('withheld' in sent) await this.#takeBack(held, sent);
      else await this.#conclude(held, sent);
    } catch (error) {
      // It stays pending, in the store alone, until the next start.
      this.#forget(held);
      throw error;
    }
  }

  async #send(held: Held, tenure: number): Promise<Sent | Withheld | undefined> {
    const kept = this.#takeBody(held);
    return this.#isReplaced(held) ? undefined : await sendHeld(this.#options, { held, tenure, kept });
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

  /** It waits for its turn again, or, where its body is the reason, a little first. */
  async #takeBack(held: Held, { withheld }: Withheld): Promise<void> {
    const { store, clock, log } = this.#options;
    const { mark } = this.#pending;
    if (!(await store.withdrawAttempt(held.ref)) || this.#isReplaced(held)) {
      log.debug({ run_id: held.runId }, 'the delivery is no longer ours');
      this.#leave(held, mark);
      return;
    }
    held.attempts -= 1;
    if (withheld === 'not_permitted') this.#takeTurn([held]);
    else this.#waitUntil(held, clock.now() + UNREADABLE_MS);
  }

  async #conclude(held: Held, { outcome: { timings, ...answer }, next }: Sent): Promise<void> {
    const queueMs = Math.max(0, answer.startedAt - held.dueAt);
    const result = { number: held.attempts, ...answer, timings: { queueMs, ...timings } };
    this.#report.attempt(held, result, next);
    const { mark } = this.#pending;
    const written = await this.#options.store.endAttempt(held.ref, result, next);
    if (written && next.state === 'pending' && !this.#isReplaced(held)) {
      held.repeated = true;
      this.#waitUntil(held, next.dueAt);
      return;
    }
    if (!written) this.#options.log.debug({ run_id: held.runId }, 'the delivery is no longer ours');
    else if (next.state !== 'pending') this.#report.settled(held, result, next);
    this.#leave(held, mark);
  }

  #leave(held: Held, mark: number): void {
    // One that was replaced is still pending, as the one that replaced it.
    if (!this.#isReplaced(held)) this.#pending.change(held.projectId, -1, mark);
    this.#forget(held);
    this.#claims.look();
  }

  #forget(held: Held): void {
    this.#room.leave(held);
    if (!this.#isReplaced(held)) this.#held.delete(held.ref);
  }

  #isReplaced(held: Held): boolean {
    return this.#held.get(held.ref) !== held;
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
