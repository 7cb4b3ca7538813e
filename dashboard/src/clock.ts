/**
 * The time of the service, which may differ from that of this machine, and a beat for what counts down.
 */
import { signal } from '@preact/signals';

const BEAT_MS = 1000;

let ahead = 0;

/** The service's time in milliseconds, renewed with each beat: what reads it is drawn again. */
export const now = signal(Date.now());

/** What the service said the time was, between a request and its answer. */
export function setServiceTime(said: number, asked: number, answered: number): void {
  ahead = said - (asked + answered) / 2;
  now.value = Date.now() + ahead;
}

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now() + ahead;
  }, BEAT_MS);
}
