/**
 * A call that has passed its checks: it is a run now, with an id, an app, and perhaps somewhere to keep its
 * answer.
 */
import type { AppConfig } from '../config/config.ts';
import type { RunIdentity } from '../delivery/envelope.ts';
import type { Problem } from '../errors.ts';
import type { NewBody } from '../store/store.ts';
import type { OpenSpan } from '../trace.ts';

/** A complete answer, in the form that is delivered. */
export interface KeptAnswer {
  /** What the caller got. */
  readonly statusCode: number;
  readonly completedAt: number;
  readonly body: NewBody;
  /** What took the place of the answer, if anything did. */
  readonly problem?: Problem;
}

/** Where an answer goes besides its caller. */
export interface Keeping {
  /** Resolves once the answer is durable. */
  keep(answer: KeptAnswer): Promise<void>;
  /** Whether a problem that takes the place of the answer is kept as well. */
  keeps(problem: Problem): boolean;
}

export interface Run extends RunIdentity {
  readonly method: string;
  readonly config: AppConfig;
  readonly keeping: Keeping | undefined;
  /** By the clock's `elapsed`. */
  readonly startedAt: number;
  /** Where it is traced. */
  readonly span?: Pick<OpenSpan, 'context'> | undefined;
}
