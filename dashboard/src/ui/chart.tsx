/**
 * A chart with its heading, a legend that reads what is under the cursor (the latest, where that is elsewhere),
 * and the same numbers as a table for whoever cannot see or point.
 */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { createTimeNames } from '../stats.ts';
import '../style/chart.css';
import { createPlot, type Line, type Plot } from './plot.ts';
import { Scroll } from './scroll.tsx';

export interface ChartProps {
  readonly title: string;
  /** What the numbers are. */
  readonly unit: string;
  /** Beginnings of spans, in seconds since the epoch. */
  readonly times: readonly number[];
  /** The same ones whenever the chart is drawn again, with other values. */
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

const TOGETHER = 'charts';
const names = createTimeNames();

export function Chart({ title, unit, times, lines, format }: ChartProps) {
  const host = useRef<HTMLElement>(null);
  const plot = useRef<Plot | null>(null);
  const point = useSignal<number | null>(null);
  const headingId = useId();

  useEffect(() => {
    const onPoint = (index: number | null): void => {
      point.value = index;
    };
    plot.current = createPlot(host.current!, { lines, format, names, together: TOGETHER, onPoint });
    return () => plot.current?.destroy();
  }, []);

  useEffect(() => {
    plot.current?.show(
      times,
      lines.map(({ values }) => values),
    );
  }, [times]);

  return (
    <section class="panel chart" aria-labelledby={headingId}>
      <h2 id={headingId}>
        {title} <span class="unit">{unit}</span>
      </h2>
      <Legend point={point} times={times} lines={lines} format={format} />
      <figure class="plot" ref={host} aria-label={`${title}, as a chart; the table has the numbers`} />
      <Numbers title={title} times={times} lines={lines} format={format} />
    </section>
  );
}

type Data = Pick<ChartProps, 'times' | 'lines' | 'format'>;

function Legend({ point, times, lines, format }: Data & { readonly point: Signal<number | null> }) {
  const pointed = point.value !== null && point.value < times.length;
  const index = pointed ? point.value! : times.length - 1;
  const time = times[index];
  return (
    <ul class="legend">
      {lines.map(({ name, tone, dashed, values }) => (
        <li key={name}>
          <i class={`swatch ${tone}${dashed === true ? ' dashed' : ''}`} />
          {name} <b>{shown(values[index], format)}</b>
        </li>
      ))}
      <li class="faint">{time === undefined ? '' : pointed ? names.full(time) : 'latest'}</li>
    </ul>
  );
}

/** Made only while it is unfolded: it is long, and the chart is drawn often. */
function Numbers({ title, times, lines, format }: Data & Pick<ChartProps, 'title'>) {
  const isOpen = useSignal(false);
  return (
    <details
      onToggle={event => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>As a table</summary>
      {isOpen.value && (
        <Scroll class="scroll numbers" label={`${title}, as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                {lines.map(({ name }) => (
                  <th key={name} scope="col" class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times
                .map((time, index) => (
                  <tr key={time}>
                    <th scope="row">{names.full(time)}</th>
                    {lines.map(({ name, values }) => (
                      <td key={name} class="number">
                        {shown(values[index], format)}
                      </td>
                    ))}
                  </tr>
                ))
                .reverse()}
            </tbody>
          </table>
        </Scroll>
      )}
    </details>
  );
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return typeof value === 'number' ? format(value) : '–';
}
