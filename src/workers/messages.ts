/**
 * What the primary and a worker say to each other about the worker's life. The store and the places in the
 * processes of apps have ports, and words, of their own.
 */
import type { AddressInfo } from 'node:net';
import type { MetricsSnapshot } from '../metrics.ts';
import type { PackedConfig } from './packed-config.ts';

/** All that a worker is told before it begins. */
export interface Begin {
  readonly number: number;
  readonly config: PackedConfig;
  readonly version: string;
  /** Readable log lines in place of JSON. */
  readonly pretty: boolean;
  /** Where the admin listener is: no target of a webhook. */
  readonly admin: AddressInfo;
  /** For captured answers that are not complete; with the embedded store alone. */
  readonly draftDir: string | undefined;
}

export type ToWorker =
  | { readonly type: 'begin'; readonly begin: Begin }
  | { readonly type: 'measure'; readonly id: number }
  /** So many of its callers are to come again on new connections. */
  | { readonly type: 'shed'; readonly count: number }
  /** Takes no more calls, lets what is under way end, and ends. `handOver`: another has taken its place. */
  | { readonly type: 'stop'; readonly handOver: boolean };

export type FromWorker =
  /** Absent where the role takes no calls. */
  | { readonly type: 'serving'; readonly listen: AddressInfo | undefined }
  /** In words for the operator: a StartError. */
  | { readonly type: 'failed'; readonly message: string }
  /** Whether it can store deliveries, and how many callers are connected to it. */
  | { readonly type: 'state'; readonly available: boolean; readonly connections: number }
  | { readonly type: 'measured'; readonly id: number; readonly snapshot: MetricsSnapshot }
  /** Its last word. */
  | { readonly type: 'done'; readonly snapshot: MetricsSnapshot };
