/**
 * How much a dispatcher keeps in memory: a number of deliveries, and, counted apart, the bytes of bodies.
 *
 * Half of the places are for deliveries handed off by the calls of this node, half for those claimed from the
 * store, so that a long backlog does not keep new deliveries out, nor new ones the backlog. Once the first half
 * is filled by half, no target may have more than a tenth of it and no project more than three quarters: the
 * backlog of a sick receiver waits in the store then, and the others are still handed off.
 */

export interface Guest {
  readonly projectId: string;
  /** Scheme, host and port of the target. */
  readonly origin: string;
  /** Taken from the store, not handed off. */
  readonly claimed: boolean;
}

export interface RoomLimits {
  /** Deliveries held. */
  readonly deliveries: number;
  /** Bytes of their bodies. */
  readonly bodies: number;
}

/** Larger claims hold up the store for longer and gain nothing. */
const CLAIM = 500;

export class Room {
  readonly #half: number;
  readonly #claim: number;
  readonly #bodiesLimit: number;
  readonly #targets = new Map<string, number>();
  readonly #projects = new Map<string, number>();
  #handedOff = 0;
  #claimed = 0;
  #bodies = 0;

  constructor({ deliveries, bodies }: RoomLimits) {
    this.#half = Math.max(1, Math.floor(deliveries / 2));
    this.#claim = Math.min(CLAIM, Math.ceil(this.#half / 2));
    this.#bodiesLimit = bodies;
  }

  get held(): number {
    return this.#handedOff + this.#claimed;
  }

  /** Whether a new delivery may be handed off. */
  admits({ projectId, origin }: Omit<Guest, 'claimed'>): boolean {
    if (this.#handedOff < this.#half / 2) return true;
    return (
      this.#handedOff < this.#half &&
      (this.#targets.get(origin) ?? 0) < this.#half / 10 &&
      (this.#projects.get(projectId) ?? 0) < (this.#half * 3) / 4
    );
  }

  /** How many to claim now: a whole batch or none, so that claims stay few. */
  claimable(): number {
    return this.#claimed + this.#claim <= this.#half ? this.#claim : 0;
  }

  enter(guest: Guest): void {
    if (guest.claimed) this.#claimed += 1;
    else this.#count(guest, 1);
  }

  leave(guest: Guest): void {
    if (guest.claimed) this.#claimed -= 1;
    else this.#count(guest, -1);
  }

  /** Whether a body of this size may be kept; if so, `releaseBody` must follow. */
  keepBody(size: number): boolean {
    if (this.#bodies + size > this.#bodiesLimit) return false;
    this.#bodies += size;
    return true;
  }

  releaseBody(size: number): void {
    this.#bodies -= size;
  }

  #count({ projectId, origin }: Guest, by: 1 | -1): void {
    this.#handedOff += by;
    add(this.#targets, origin, by);
    add(this.#projects, projectId, by);
  }
}

/** Adds to a count that is forgotten at 0. */
export function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
