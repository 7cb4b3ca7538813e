/**
 * How the node is that answers: what it says of itself, each line judged, with what to do where it is not well.
 */
import { now } from '../clock.ts';
import { bytes, grouped, percent, span } from '../format.ts';
import { readinessRow, type Row, rowsOf } from '../health.ts';
import { type Metrics, parseMetrics, sumOf } from '../prometheus.ts';
import { useResource } from '../resource.ts';
import { session } from '../session.ts';
import '../style/health.css';
import { Figure, Waiting } from '../ui/parts.tsx';
import { Scroll } from '../ui/scroll.tsx';

interface Told {
  readonly readiness: string;
  /** Or the status with which they were refused. */
  readonly metrics: Metrics | number;
}

const EVERY_MS = 5_000;
const NONE: Metrics = new Map();

export function Health() {
  const { state, reload } = useResource<Told>({ key: 'health', load: readHealth, everyMs: EVERY_MS });
  const { data, error } = state.value;
  return (
    <>
      <h1>Health</h1>
      {(data === undefined || error !== undefined) && <Waiting of={state.value} onRetry={reload} />}
      {data !== undefined && <Judged told={data} />}
    </>
  );
}

async function readHealth(signal: AbortSignal): Promise<Told> {
  const [readiness, metrics] = await Promise.all([
    fetch('/readyz', { signal }).then(answer => answer.text()),
    fetch('/metrics', { signal }).then(async answer =>
      answer.ok ? parseMetrics(await answer.text()) : answer.status,
    ),
  ]);
  return { readiness: readiness.trim(), metrics };
}

function Judged({ told }: { readonly told: Told }) {
  const metrics = typeof told.metrics === 'number' ? NONE : told.metrics;
  const rows = [readinessRow(told.readiness), ...rowsOf(metrics)];
  const looks = rows.filter(({ look }) => look).length;
  return (
    <>
      <output class={looks === 0 ? 'faint' : 'problem'}>
        {summaryOf(looks, typeof told.metrics === 'number')}
      </output>
      <Facts metrics={metrics} />
      {typeof told.metrics === 'number' && (
        <p class="trouble">
          The metrics were refused with {told.metrics}, so there is nothing more to tell. They are for holders
          of the admin token.
        </p>
      )}
      <Scroll label="What the node tells">
        <table class="judged">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Value</th>
              <th scope="col">Judgement</th>
              <th scope="col">What it means, or what to do</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(row => (
              <JudgedRow key={row.name} {...row} />
            ))}
          </tbody>
        </table>
      </Scroll>
      <p class="faint footnote">
        This is of the node that answers here, with all its workers; other nodes tell of themselves. Counts
        are since its start.
      </p>
    </>
  );
}

function summaryOf(looks: number, isRefused: boolean): string {
  if (looks > 0) return looks === 1 ? '1 thing to look at.' : `${looks} things to look at.`;
  return isRefused ? 'It is well, as far as it tells.' : 'All is well.';
}

function JudgedRow({ name, value, look, words }: Row) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="value">{value}</td>
      <td>
        <span class={`state ${look ? 'bad' : 'good'}`}>{look ? 'look at this' : 'ok'}</span>
      </td>
      <td class="words">{words}</td>
    </tr>
  );
}

/** What there is nothing to judge about. */
function Facts({ metrics }: { readonly metrics: Metrics }) {
  const told = (name: string): number | undefined => sumOf(metrics, `afterword_${name}`);
  const started = told('start_time_seconds');
  const memory = told('resident_memory_bytes');
  const heap = told('heap_used_bytes');
  const cpu = told('cpu_seconds_total');
  const connections = told('connections');
  const upMs = started === undefined ? undefined : Math.max(1, now.value - started * 1000);
  return (
    <dl class="figures">
      <Figure name="Version" note={upMs !== undefined && `up for ${span(upMs)}`}>
        {session.value?.version ?? '–'}
      </Figure>
      {memory !== undefined && (
        <Figure name="Memory" note={heap !== undefined && `${bytes(heap)} of it objects`}>
          {bytes(memory)}
        </Figure>
      )}
      {upMs !== undefined && cpu !== undefined && (
        <Figure name="CPU" note="of one core, since the start">
          {percent((cpu * 1000) / upMs)}
        </Figure>
      )}
      {connections !== undefined && (
        <Figure name="Connections" note="callers">
          {grouped(connections)}
        </Figure>
      )}
    </dl>
  );
}
