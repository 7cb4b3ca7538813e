/**
 * A clock that stands still until a test moves it.
 */
import { type Clock, systemClock } from '../../src/clock.ts';

interface Alarm {
  readonly at: number;
  readonly task: () => void;
}

export class ManualClock implements Clock {
  readonly #start: number;
  readonly #alarms = new Set<Alarm>();
  #elapsed = 0;

  constructor(start = 1_700_000_000_000) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  after(ms: number, task: () => void): () => void {
    const alarm = { at: this.#elapsed + ms, task };
    this.#alarms.add(alarm);
    return () => this.#alarms.delete(alarm);
  }

  /** How many tasks wait for their time. */
  get waiting(): number {
    return this.#alarms.size;
  }

  /** Milliseconds until the next task, or undefined when none waits. */
  get nextIn(): number | undefined {
    const first = this.#first();
    return first === undefined ? undefined : first.at - this.#elapsed;
  }

  /** Moves on by `ms`, running what falls due on the way, each at its own time. */
  advance(ms: number): void {
    const end = this.#elapsed + ms;
    for (let alarm = this.#first(); alarm !== undefined && alarm.at <= end; alarm = this.#first()) {
      this.#elapsed = Math.max(this.#elapsed, alarm.at);
      this.#alarms.delete(alarm);
      alarm.task();
    }
    this.#elapsed = end;
  }

  #first(): Alarm | undefined {
    let first: Alarm | undefined;
    for (const alarm of this.#alarms) if (first === undefined || alarm.at < first.at) first = alarm;
    return first;
  }
}

/**
 * Real time for short waits. A long one is over at once, as if its time had passed, and is noted; one of a
 * minute or more is a limit that no test waits for, and stays what it is.
 */
export class HurriedClock implements Clock {
  static readonly #LONG_MS = 50;
  static readonly #LIMIT_MS = 60_000;
  readonly waits: number[] = [];
  #skipped = 0;

  now(): number {
    return systemClock.now() + this.#skipped;
  }

  elapsed(): number {
    return systemClock.elapsed() + this.#skipped;
  }

  after(ms: number, task: () => void): () => void {
    if (ms < HurriedClock.#LONG_MS || ms >= HurriedClock.#LIMIT_MS) return systemClock.after(ms, task);
    this.waits.push(ms);
    const turn = setImmediate(() => {
      this.skip(ms);
      task();
    });
    return () => clearImmediate(turn);
  }

  /** As if this much time had passed. */
  skip(ms: number): void {
    this.#skipped += ms;
  }
}
