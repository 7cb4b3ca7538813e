/**
 * How an app whose processes run here stands, for people who look.
 */
import type { PrintedLine } from './output.ts';

/** `pausing`: its process has ended, and the next is started after a pause. */
export type ReplicaPhase = 'starting' | 'ready' | 'retired' | 'pausing';

export interface ReplicaState {
  /** Which of the app's replicas, from 0. */
  readonly index: number;
  readonly phase: ReplicaPhase;
  readonly pid?: number;
  /** How often another process has taken the place of one. */
  readonly restarts: number;
  /** When its process was started, in milliseconds since the epoch. */
  readonly startedAt?: number;
  /** Calls that it has now. */
  readonly active: number;
}

/** `idle`: its first call starts it. `failing`: none of its processes is up, and the last has not come up. */
export type AppPhase = 'idle' | 'starting' | 'ready' | 'failing';

export interface HostedState {
  readonly projectId: string;
  readonly app: string;
  readonly phase: AppPhase;
  readonly replicas: readonly ReplicaState[];
  /** Calls that wait for a place. */
  readonly waiting: number;
  /** What it has printed last, the oldest first. */
  readonly lines: readonly PrintedLine[];
}

/** Of an app that has been started, by its replicas. */
export function phaseOf(replicas: readonly ReplicaState[]): AppPhase {
  const has = (phase: ReplicaPhase): boolean => replicas.some(replica => replica.phase === phase);
  if (replicas.length === 0) return 'idle';
  if (has('ready')) return 'ready';
  return has('starting') ? 'starting' : 'failing';
}
