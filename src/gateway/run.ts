/**
 * A call that has passed its checks: it is a run now, with an id, an app, and perhaps a webhook.
 */
import type { AppConfig } from '../config/config.ts';
import type { RunIdentity } from '../delivery/envelope.ts';
import type { Confidential } from '../store/store.ts';

export interface Webhook {
  readonly target: string;
  readonly confidential: Confidential;
}

export interface Run extends RunIdentity {
  readonly method: string;
  readonly config: AppConfig;
  readonly webhook: Webhook | undefined;
  /** By the clock's `elapsed`. */
  readonly startedAt: number;
}
