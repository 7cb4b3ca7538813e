/** What is counted and timed as it happens, and the closed sets that it is counted by. */
import { ATTEMPT_ERRORS } from '../delivery/outcome.ts';
import { BLOCK_REASONS } from '../delivery/target.ts';
import { PROBLEMS } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { Instruments } from './instruments.ts';

const YES_NO = ['yes', 'no'] as const;
const RUNTIMES = ['cortex', 'custom', 'none'] as const;
const CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx', 'other'] as const;
const CODES: readonly string[] = [...Object.keys(PROBLEMS), 'other'];
const OUTCOMES: readonly string[] = [...CLASSES.slice(0, -1), ...ATTEMPT_ERRORS];
const SETTLED = ['delivered', 'failed', 'cancelled'] as const;
const REASONS = ['exhausted', 'rejected', 'blocked', 'none'] as const;
const BLOCKED_AT = ['intake', 'connect'] as const;
const OPERATIONS = ['insert_delivery', 'insert_run', 'read_backlog'] as const;
const RUN_ENDS = ['succeeded', 'failed', 'cancelled'] as const;

const CALL_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 900];
const ATTEMPT_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30];
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];
const WAIT_SECONDS = [0.01, 0.1, 1, 10, 60, 300, 900, 3600, 14_400, 43_200];

export function ofCalls({
  counter,
  histogram,
}: Instruments): Pick<Metrics, 'call' | 'lateCommit' | 'commit'> {
  const calls = counter({
    name: 'calls_total',
    help: 'Calls, by runtime, status class, and whether they had a webhook or were asynchronous',
    labels: [
      ['runtime', RUNTIMES],
      ['status', CLASSES],
      ['webhook', YES_NO],
      ['async', YES_NO],
    ],
    // A call that is refused has come to no app, and nothing of it was asked for.
    possible: ({ runtime, webhook, async }) => runtime !== 'none' || (webhook === 'no' && async === 'no'),
  });
  const seconds = histogram({
    name: 'call_duration_seconds',
    help: 'From a call to the end of its answer',
    bounds: CALL_SECONDS,
  });
  const problems = counter({
    name: 'problems_total',
    help: 'Calls that the service itself ended with an error, by its code',
    labels: [['code', CODES]],
  });
  return {
    call({ runtime, status, code, webhook, async, durationMs }) {
      calls(runtime, classOf(status), webhook ? 'yes' : 'no', async ? 'yes' : 'no');
      seconds(durationMs);
      if (code !== undefined) problems(code);
    },
    lateCommit: counter({
      name: 'commit_wait_exceeded_total',
      help: 'Answers that ended before their delivery was stored',
      labels: [],
    }),
    commit: histogram({
      name: 'commit_duration_seconds',
      help: 'From an answer to its stored delivery',
      bounds: COMMIT_SECONDS,
    }),
  };
}

export function ofDeliveries(
  instruments: Instruments,
): Pick<Metrics, 'made' | 'attempt' | 'settled' | 'blocked'> {
  const { counter, histogram } = instruments;
  const attempts = counter({
    name: 'attempts_total',
    help: 'Attempts, by status class or error code',
    labels: [['outcome', OUTCOMES]],
  });
  const timed = (name: string, help: string): ((ms: number) => void) =>
    histogram({ name, help, bounds: ATTEMPT_SECONDS });
  const seconds = timed('attempt_duration_seconds', 'One attempt');
  const queued = timed('attempt_queue_seconds', 'From due to sent');
  const firstByte = timed('attempt_first_byte_seconds', 'From the start of an attempt to the status');
  const settled = counter({
    name: 'deliveries_settled_total',
    help: 'Deliveries that ended',
    labels: [
      ['state', SETTLED],
      ['reason', REASONS],
    ],
    possible: ({ state, reason }) => (state === 'failed') === (reason !== 'none'),
  });
  return {
    made: counter({ name: 'deliveries_made_total', help: 'Deliveries that were stored', labels: [] }),
    attempt({ status, error = 'other', timings: { totalMs, queueMs, firstByteMs } }) {
      attempts(status === undefined ? error : classOf(status));
      seconds(totalMs);
      queued(queueMs);
      if (firstByteMs !== undefined) firstByte(firstByteMs);
    },
    settled: ({ state, reason }) => settled(state, reason ?? 'none'),
    blocked: counter({
      name: 'targets_blocked_total',
      help: 'Targets that were refused, by when and why',
      labels: [
        ['at', BLOCKED_AT],
        ['reason', BLOCK_REASONS],
      ],
    }),
  };
}

export function ofRuns({ counter, histogram }: Instruments): Pick<Metrics, 'runBegun' | 'runEnded'> {
  const starts = counter({ name: 'run_starts_total', help: 'Starts of asynchronous calls', labels: [] });
  const waited = histogram({
    name: 'run_wait_seconds',
    help: 'From the 202 of an asynchronous call to a start of it',
    bounds: WAIT_SECONDS,
  });
  const ended = counter({
    name: 'runs_total',
    help: 'Asynchronous calls that ended',
    labels: [['state', RUN_ENDS]],
  });
  return {
    runBegun(waitedMs) {
      starts();
      waited(waitedMs);
    },
    runEnded: ({ state }) => ended(state),
  };
}

export function ofStore({ counter }: Instruments): Pick<Metrics, 'storeFailed'> {
  return {
    storeFailed: counter({
      name: 'store_errors_total',
      help: 'Operations that the store refused, by what they were',
      labels: [['operation', OPERATIONS]],
    }),
  };
}

function classOf(status: number): (typeof CLASSES)[number] {
  return CLASSES[Math.floor(status / 100) - 1] ?? 'other';
}
