/**
 * Lines over time, drawn by uPlot into an element: as wide as that is, in the colours of the page, and telling
 * which point the cursor is at.
 */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { loneIndexes, type TimeNames } from '../stats.ts';

export interface Line {
  readonly name: string;
  /** A colour of the page, by its name in the style. */
  readonly tone: 'accent' | 'good' | 'bad' | 'busy' | 'faint';
  /** Told by more than its colour. */
  readonly dashed?: boolean;
  readonly values: readonly (number | null)[];
}

export interface PlotOptions {
  readonly lines: readonly Omit<Line, 'values'>[];
  readonly format: (value: number) => string;
  readonly names: TimeNames;
  /** Plots with the same have their cursors at the same time. */
  readonly together: string;
  /** Null where it has left. */
  readonly onPoint: (index: number | null) => void;
}

export interface Plot {
  show(times: readonly number[], values: readonly (readonly (number | null)[])[]): void;
  destroy(): void;
}

type Colour = (expression: string) => string;

const HEIGHT = 190;
const AXIS_WIDTH = 60;
const FONT = '12px system-ui, sans-serif';

export function createPlot(host: HTMLElement, options: PlotOptions): Plot {
  const plot = new uPlot(optionsOf(host, options), [[], ...options.lines.map(() => [])], host);
  const resized = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: HEIGHT }));
  resized.observe(host);
  const darkness = matchMedia('(prefers-color-scheme: dark)');
  const redraw = (): void => plot.redraw(false);
  darkness.addEventListener('change', redraw);
  return {
    show: (times, values) => plot.setData([[...times], ...values.map(each => [...each])]),
    destroy() {
      darkness.removeEventListener('change', redraw);
      resized.disconnect();
      plot.destroy();
    },
  };
}

function optionsOf(host: HTMLElement, options: PlotOptions): uPlot.Options {
  const { lines, format, names, together, onPoint } = options;
  const colour = colourIn(host);
  const axis: uPlot.Axis = {
    stroke: () => colour('var(--faint)'),
    font: FONT,
    grid: { stroke: () => colour('var(--line)'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: host.clientWidth,
    height: HEIGHT,
    padding: [10, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: together }, move: toPoint },
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] } },
    axes: [
      {
        ...axis,
        values: (_plot, splits) => splits.map(names.short),
        grid: { show: false },
        size: 30,
        space: 64,
      },
      { ...axis, values: (_plot, splits) => splits.map(format), size: AXIS_WIDTH, space: 36 },
    ],
    series: [{}, ...lines.map(line => seriesOf(line, colour))],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}

/** The cursor is at a point, not between two. */
function toPoint(plot: uPlot, left: number, top: number): [left: number, top: number] {
  const time = left < 0 ? undefined : plot.data[0][plot.posToIdx(left)];
  return time === undefined ? [left, top] : [plot.valToPos(time, 'x'), top];
}

function seriesOf({ name, tone, dashed = false }: Omit<Line, 'values'>, colour: Colour): uPlot.Series {
  return {
    label: name,
    stroke: () => colour(`var(--${tone})`),
    width: 1.75,
    ...(dashed
      ? { dash: [5, 4] }
      : { fill: () => colour(`color-mix(in srgb, var(--${tone}) 10%, transparent)`) }),
    points: {
      show: false,
      size: 5,
      fill: () => colour(`var(--${tone})`),
      filter: (plot, index) => loneIndexes(plot.data[index]! as (number | null)[]),
    },
  };
}

/** A canvas does not know the properties of a style, so an element that does is asked. */
function colourIn(host: HTMLElement): Colour {
  const asked = document.createElement('span');
  asked.hidden = true;
  host.append(asked);
  return expression => {
    asked.style.color = expression;
    return getComputedStyle(asked).color;
  };
}
