/**
 * Judges how a node is by what it tells of itself: what is well, what somebody should look at, and what to do
 * then. The bounds are those of the alert rules; where a rule asks for a rate, the time since the node started
 * stands in for it.
 */
import { count, duration, grouped, span } from './format.ts';
import { type Metrics, quantileOf, sumOf } from './prometheus.ts';

export interface Row {
  readonly name: string;
  readonly value: string;
  /** Whether somebody should look at this. */
  readonly look: boolean;
  /** What it means; where somebody should look, what to do. */
  readonly words: string;
}

/** `told`: the answer of `/readyz`. */
export function readinessRow(told: string): Row {
  const [look, words] = READINESS[told] ?? [
    true,
    'This is not an answer of the node: what stands before it?',
  ];
  return { name: 'Readiness', value: told.slice(0, 40), look, words };
}

const READINESS: Readonly<Record<string, readonly [look: boolean, words: string]>> = {
  ready: [false, 'It takes calls, and can store what it promises to deliver.'],
  starting: [true, 'It opens its store and starts its apps: give it a moment.'],
  stopping: [true, 'It ends what it has begun: send calls to another node.'],
  store_unavailable: [
    true,
    'Calls with a webhook are refused until the store is back: mend that, and do not restart the node.',
  ],
};

/** A value, what it means when all is well, and otherwise what to do. */
interface Judgement {
  readonly value: string;
  readonly well: string;
  readonly advice?: string | false;
}

interface Reading {
  /** 0 where the node does not tell. */
  readonly of: (metric: string, labels?: Readonly<Record<string, string>>) => number;
  readonly quantile: (histogram: string, share: number) => number | undefined;
}

interface Check {
  readonly name: string;
  /** Where the node does not tell this, there is no row. */
  readonly metric: string;
  readonly judge: (reading: Reading) => Judgement;
}

const PREFIX = 'afterword_';
const MINUTE = 60;

const CHECKS: readonly Check[] = [
  { name: 'Store', metric: 'store_available', judge: judgeStore },
  {
    name: 'Store errors',
    metric: 'store_errors_total',
    judge: ({ of }) => ({
      value: grouped(of('store_errors_total')),
      well: 'The store has refused nothing for good.',
      advice:
        of('store_errors_total') > 0 &&
        'The store refused something for good, which is a bug: find it in the log, and report it.',
    }),
  },
  { name: 'Commit time, p50 / p99', metric: 'commit_duration_seconds_count', judge: judgeCommits },
  {
    name: 'Waits beyond commitWait',
    metric: 'commit_wait_exceeded_total',
    judge: ({ of }) => ({
      value: `${grouped(of('commit_wait_exceeded_total'))} of ${count(of('deliveries_made_total'))} deliveries`,
      well: 'Deliveries are on disk before the answers of their calls end.',
      advice:
        of('commit_wait_exceeded_total') > 0.001 * of('deliveries_made_total') &&
        'Answers ended before their delivery was on disk: look at the disk, or at the database.',
    }),
  },
  {
    name: 'Pending deliveries',
    metric: 'deliveries_pending',
    judge: ({ of }) => ({
      value: grouped(of('deliveries_pending')),
      well: 'Of all nodes, in the store: they wait for their attempts.',
      advice:
        of('deliveries_pending') > 10_000 &&
        'If they get more, more come in than go out: look at the deliveries of each node.',
    }),
  },
  {
    name: 'Oldest pending delivery',
    metric: 'oldest_pending_delivery_seconds',
    judge: ({ of }) => ({
      value: age(of('oldest_pending_delivery_seconds')),
      well: 'One that gets its slots at once has ended within about a minute.',
      advice:
        of('oldest_pending_delivery_seconds') > 5 * MINUTE &&
        'Deliveries wait for slots: raise webhooks.concurrency, or add workers or nodes.',
    }),
  },
  { name: 'Deliveries of this node', metric: 'deliveries_waiting', judge: judgeSlots },
  {
    name: 'Unfinished runs',
    metric: 'runs_unfinished',
    judge: ({ of }) => ({
      value: `${grouped(of('runs_unfinished'))} · ${grouped(of('runs_in_progress'))} in progress here`,
      well: 'Of all nodes: asynchronous calls that are queued or carried out.',
    }),
  },
  {
    name: 'Oldest queued run',
    metric: 'oldest_queued_run_seconds',
    judge: ({ of }) => ({
      value: age(of('oldest_queued_run_seconds')),
      well: 'A queued run starts when its app has a place for it.',
      advice:
        of('oldest_queued_run_seconds') > 15 * MINUTE &&
        'Its app is down, or takes too few calls at once: look at the apps.',
    }),
  },
  {
    name: 'Blocked targets',
    metric: 'targets_blocked_total',
    judge: ({ of }) => ({
      value:
        `${grouped(of('targets_blocked_total', { at: 'intake' }))} at intake · ` +
        `${grouped(of('targets_blocked_total', { at: 'connect' }))} at connect`,
      well: 'At intake, the caller is told.',
      advice:
        of('targets_blocked_total', { at: 'connect' }) > 0 &&
        'Names lead to refused addresses: a receiver has moved (webhooks.allowTargets), or somebody tries to reach into your network.',
    }),
  },
  {
    name: 'Event loop lag, p50 / p99',
    metric: 'event_loop_lag_seconds',
    judge({ of }) {
      const [p50, p99] = [lag(of, '0.5'), lag(of, '0.99')];
      return {
        value: `${time(p50)} / ${time(p99)}`,
        well: 'This is how late the node gets to what is due.',
        advice: p99 > 0.1 && 'If it stays so, the CPU is used up: add workers, or nodes.',
      };
    },
  },
];

export function rowsOf(metrics: Metrics): Row[] {
  const reading: Reading = {
    of: (metric, labels) => sumOf(metrics, PREFIX + metric, labels) ?? 0,
    quantile: (histogram, share) => quantileOf(metrics, PREFIX + histogram, share),
  };
  return CHECKS.filter(({ metric }) => metrics.has(PREFIX + metric)).map(({ name, judge }) => {
    const { value, well, advice = false } = judge(reading);
    return { name, value, look: advice !== false, words: advice === false ? well : advice };
  });
}

function judgeStore({ of }: Reading): Judgement {
  const outages = of('store_outages_total');
  const away = span(of('store_unavailable_seconds_total') * 1000);
  const past = outages === 0 ? '' : ` · away ${outages === 1 ? 'once' : `${outages} times`}, ${away} in all`;
  const isThere = of('store_available') > 0;
  return {
    value: `${isThere ? 'available' : 'unavailable'}${past}`,
    well: 'What is new can be stored.',
    advice: isThere
      ? outages > 3 && 'It comes and goes: look at the disk, the network, or a database that fails over.'
      : 'Nothing new can be stored: is the disk full or read-only, does the database answer?',
  };
}

function judgeCommits({ quantile }: Reading): Judgement {
  const [p50, p99] = [0.5, 0.99].map(share => quantile('commit_duration_seconds', share));
  if (p50 === undefined || p99 === undefined)
    return { value: 'none yet', well: 'Nothing has been stored since the start.' };
  return {
    value: `${time(p50)} / ${time(p99)}`,
    well: 'This is what a webhook adds to the end of a call.',
    advice: p99 > 0.1 && 'Calls with a webhook end this much later: look at the disk, or at the database.',
  };
}

function judgeSlots({ of }: Reading): Judgement {
  const [waiting, inFlight] = [of('deliveries_waiting'), of('attempts_in_flight')];
  return {
    value: `${count(inFlight)} in flight · ${count(waiting)} waiting · ${count(of('deliveries_held'))} held`,
    well: 'What is due gets its slot soon.',
    advice:
      waiting >= 1000 &&
      (inFlight === 0
        ? 'Much is due and nothing is sent: does the store answer, and is it the role of a node to send?'
        : 'Much is due: raise webhooks.perTarget if few are in flight, otherwise webhooks.concurrency.'),
  };
}

function lag(of: Reading['of'], quantile: string): number {
  return of('event_loop_lag_seconds', { quantile });
}

function time(seconds: number): string {
  return duration(seconds * 1000);
}

function age(seconds: number): string {
  return seconds === 0 ? 'none' : span(seconds * 1000);
}
