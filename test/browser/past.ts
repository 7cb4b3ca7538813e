/**
 * What a service in a test has behind it when it starts: some hours of work, or as much as it ever gets.
 */
import { fillMillion, newestOf, runIdOf } from '../support/million.ts';
import { PROJECT } from '../support/service.ts';

export const OTHER_PROJECT = 'p-other';

const HOUR_MS = 3_600_000;

export interface PastOptions {
  readonly deliveries: number;
  readonly hours: number;
  /** Asynchronous calls among them. */
  readonly runs: number;
}

export interface Past {
  /** What is pending in it goes to `deaf`. */
  readonly fill: (data: string, deaf: string) => void;
  /** The time so many minutes before its end, as a filter takes it: however late it is, there is as much since. */
  readonly minutesBefore: (minutes: number) => string;
  /** The run of the newest delivery, which is pending. */
  readonly pending: string;
  /** The run of one that was given up after three attempts without a connection. */
  readonly failed: string;
  /** An asynchronous one. */
  readonly run: string;
}

export function pastOf({ deliveries, hours, runs }: PastOptions): Past {
  const until = Date.now();
  const span = { deliveries, from: until - hours * HOUR_MS, until };
  const runEvery = deliveries / runs;
  const projects = [PROJECT, OTHER_PROJECT] as const;
  return {
    fill: (data, pendingTarget) => fillMillion({ ...span, data, runEvery, projects, pendingTarget }),
    minutesBefore: minutes => new Date(until - minutes * 60_000).toISOString(),
    pending: runIdOf(span, deliveries),
    failed: newestOf(span, 'unreachable'),
    run: runIdOf(span, runEvery),
  };
}
