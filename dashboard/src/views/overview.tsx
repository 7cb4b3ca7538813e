/**
 * What happened in a window of time, and what waits now: rates, how much arrives and how fast, and the receivers
 * that fail.
 */
import { useMemo, useRef } from 'preact/hooks';
import { get } from '../api/client.ts';
import type { Stats } from '../api/shapes.ts';
import { now } from '../clock.ts';
import { duration } from '../format.ts';
import { parameter, withParameters } from '../location.ts';
import { type Loaded, useResource } from '../resource.ts';
import { isQuiet, rate, seriesOf, type Told, WINDOWS, windowOf } from '../stats.ts';
import '../style/overview.css';
import { Chart } from '../ui/chart.tsx';
import { Waiting } from '../ui/parts.tsx';
import { FailingHosts } from './overview/failing-hosts.tsx';
import { Figures } from './overview/figures.tsx';
import { FirstCall } from './overview/first-call.tsx';

const EVERY_MS = 10_000;

export function Overview() {
  const window = windowOf(parameter('window'));
  const project = parameter('project');
  const { state, reload } = useResource<Told>({
    key: `${window} ${project ?? ''}`,
    async load(signal) {
      const stats = await get<Stats>('stats', { window, project }, signal);
      return { window, project, stats, readAt: now.peek() };
    },
    everyMs: EVERY_MS,
  });
  const told = useLatest(state.value);
  const isOfAnother = told?.window !== window || told.project !== project;
  return (
    <>
      <div class="spread">
        <h1>Overview</h1>
        <nav class="choices" aria-label="Window">
          {WINDOWS.map(([each, name]) => (
            <a
              key={each}
              href={withParameters({ window: each })}
              aria-current={each === window ? 'true' : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
      </div>
      {(told === undefined || state.value.error !== undefined) && (
        <Waiting of={state.value} onRetry={reload} />
      )}
      {told !== undefined && (
        <div class={`overview${isOfAnother ? ' passing' : ''}`}>
          <Figures told={told} />
          {isQuiet(told.stats) ? <FirstCall told={told} /> : <Charts told={told} />}
          <FailingHosts told={told} />
        </div>
      )}
    </>
  );
}

/** What was told last, also where that was of another window, until the right one comes or cannot be had. */
function useLatest({ data, loading }: Loaded<Told>): Told | undefined {
  const latest = useRef<Told>(undefined);
  if (data !== undefined || !loading) latest.current = data;
  return latest.current;
}

function Charts({ told: { stats, readAt } }: { readonly told: Told }) {
  const series = useMemo(() => seriesOf(stats, readAt), [stats, readAt]);
  const { times, calls, made, delivered, failed, p50, p95 } = series;
  return (
    <div class="charts">
      <Chart
        title="Calls and deliveries"
        unit="per minute"
        times={times}
        lines={[
          { name: 'Calls', tone: 'accent', values: calls },
          { name: 'Deliveries', tone: 'busy', dashed: true, values: made },
        ]}
        format={rate}
      />
      <Chart
        title="Rounds that ended"
        unit="per minute"
        times={times}
        lines={[
          { name: 'Delivered', tone: 'good', values: delivered },
          { name: 'Failed', tone: 'bad', dashed: true, values: failed },
        ]}
        format={rate}
      />
      <Chart
        title="First attempt"
        unit="start to end"
        times={times}
        lines={[
          { name: 'p50', tone: 'accent', values: p50 },
          { name: 'p95', tone: 'busy', dashed: true, values: p95 },
        ]}
        format={duration}
      />
    </div>
  );
}
