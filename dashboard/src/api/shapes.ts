/**
 * What the management API answers, as far as the page reads it. A test compares these with the schemas that the
 * service is made of.
 */

export type DeliveryState = 'pending' | 'delivered' | 'failed' | 'cancelled';
export type FailureReason = 'exhausted' | 'rejected' | 'blocked';
export type RunState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type WindowName = '1h' | '24h' | '7d';

export interface Delivery {
  run_id: string;
  project_id: string;
  app: string;
  target: string;
  status_code: number;
  state: DeliveryState;
  reason?: FailureReason | undefined;
  round: number;
  attempt_count: number;
  last_status?: number | undefined;
  last_error?: string | undefined;
  created_at: string;
  next_attempt_at?: string | undefined;
  settled_at?: string | undefined;
}

export interface DeliveryList {
  deliveries: Delivery[];
  next_cursor: string | null;
}

export interface Timings {
  queue: number;
  dns?: number | undefined;
  connect?: number | undefined;
  tls?: number | undefined;
  first_byte?: number | undefined;
  total: number;
}

export interface AttemptError {
  code: string;
  meaning: string;
  advice: string;
}

export interface Attempt {
  round: number;
  number: number;
  trigger: 'automatic' | 'manual';
  target?: string | undefined;
  started_at: string;
  timings: Timings;
  status?: number | undefined;
  error?: AttemptError | undefined;
  headers?: [string, string][] | undefined;
  excerpt?: string | undefined;
  excerpt_encoding?: 'base64' | undefined;
}

export interface RunFacts {
  state: RunState;
  created_at: string;
  started_at?: string | undefined;
  ended_at?: string | undefined;
  starts: number;
  cancelling?: true | undefined;
}

export interface DeliveryRequest {
  method: 'POST';
  url: string;
  headers: Record<string, string>;
  signed?: boolean | undefined;
  body?: Record<string, unknown> | null | undefined;
}

export interface DeliveryDetail extends Delivery {
  own_target?: string | undefined;
  attempts: Attempt[];
  trace_id?: string | undefined;
  run?: RunFacts | undefined;
  request?: DeliveryRequest | undefined;
}

export interface Counted {
  matching: number;
  exact: boolean;
}

export interface JobAccepted {
  job_id: string;
  total: number;
}

export interface Job {
  job_id: string;
  state: 'running' | 'done';
  total: number;
  seen: number;
  redelivered: number;
  created_at: string;
  ended_at?: string | undefined;
}

export interface RunDelivery {
  target: string;
  state?: DeliveryState | undefined;
  reason?: FailureReason | undefined;
  attempts?: number | undefined;
}

export interface Run extends RunFacts {
  run_id: string;
  project_id: string;
  app: string;
  status_code?: number | undefined;
  error?: { type: string } | undefined;
  delivery?: RunDelivery | undefined;
}

export interface RunWithAnswer extends Omit<Run, 'error'> {
  error?: { type: string; message?: string | undefined } | undefined;
  result?: unknown;
  result_encoding?: 'base64' | undefined;
  result_omitted?: { bytes: number; limit: number } | undefined;
  result_expired?: true | undefined;
  content_type?: string | undefined;
  content_encoding?: string | undefined;
  run_time_ms?: number | undefined;
  timestamp?: string | undefined;
}

export interface RunList {
  runs: Run[];
  next_cursor: string | null;
}

export interface StatsCounts {
  calls: number;
  call_errors: number;
  made: number;
  delivered: number;
  failed: number;
  p50_ms: number | null;
  p95_ms: number | null;
}

export interface StatsSpan extends StatsCounts {
  at: string;
}

export interface StatsTotals extends StatsCounts {
  success_rate: number | null;
}

export interface Stats {
  since: string;
  step_seconds: number;
  spans: StatsSpan[];
  totals: StatsTotals;
  backlog: { pending: number; oldest_at?: string | undefined };
  failing_hosts: { host: string; attempts: number; failures: number }[];
}

export interface Replica {
  index: number;
  state: 'starting' | 'ready' | 'retired' | 'pausing';
  pid?: number | undefined;
  restarts: number;
  started_at?: string | undefined;
  active_calls: number;
}

export interface AppFacts {
  project_id: string;
  app: string;
  runtime: 'cortex' | 'custom';
  place: 'url' | 'process';
  state: 'elsewhere' | 'idle' | 'starting' | 'ready' | 'failing';
  replicas: Replica[];
  active_calls?: number | undefined;
  waiting_calls?: number | undefined;
  log: { at: string; text: string }[];
}

export interface AppList {
  apps: AppFacts[];
}
