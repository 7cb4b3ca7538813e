/**
 * What happened, counted: for each project and minute, and for each project, receiver and hour. Nodes count in
 * memory and add what they have every few seconds, so a crash loses a few seconds of it and nothing else.
 */

/** Bounds of the times of first attempts, in milliseconds; the last bucket has no upper one. */
export const LATENCY_BOUNDS: readonly number[] = Array.from({ length: 36 }, (_, i) => 2 ** (i / 2));

/** The numbers of a span of time. */
export interface Counts {
  /** Calls that ended, and of these with a status of 500 or more. */
  readonly calls: number;
  readonly callErrors: number;
  /** Deliveries that were made, and that ended so or so. */
  readonly made: number;
  readonly delivered: number;
  readonly failed: number;
  /** First attempts by how long they took, one more than there are bounds. */
  readonly firstAttempts: readonly number[];
}

export interface MinuteCounts extends Counts {
  readonly projectId: string;
  /** When it began, in milliseconds since the epoch. */
  readonly minute: number;
}

export interface HostCounts {
  readonly projectId: string;
  readonly host: string;
  readonly hour: number;
  readonly attempts: number;
  readonly failures: number;
}

export interface StatsWindow {
  /** All projects where absent. */
  readonly projectId?: string;
  readonly since: number;
  /** Length of the spans that are told, in milliseconds: whole minutes. Each begins at a multiple of it. */
  readonly step: number;
}

export interface Span extends Counts {
  readonly at: number;
}

export interface FailingHost {
  readonly host: string;
  readonly attempts: number;
  readonly failures: number;
}

export interface StatsStore {
  /** Adds to what is there. */
  add(minutes: readonly MinuteCounts[], hosts: readonly HostCounts[]): Promise<void>;
  /** Spans that have anything, oldest first. */
  spans(window: StatsWindow): Promise<Span[]>;
  /** Those with the most failures, at most so many. The hour that the window begins in is counted whole. */
  failingHosts(window: Omit<StatsWindow, 'step'>, limit: number): Promise<FailingHost[]>;
  /** Deletes what is older. */
  prune(before: number): Promise<void>;
}
