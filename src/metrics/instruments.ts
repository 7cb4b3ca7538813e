/**
 * The kinds of metrics there are, on one registry. A counter has a cell for each combination of the values of
 * its labels, which are closed sets: counting is an addition, and what the client library makes of it is only
 * asked for when somebody reads. The last value of a set stands for whatever is not in it.
 */
import { type Aggregator, Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';

/** A label and all the values that it can have. */
export type Label = readonly [name: string, values: readonly string[]];

type ValuesOf<L extends readonly Label[]> = { readonly [I in keyof L]: L[I][1][number] };

export interface CounterKind<L extends readonly Label[]> {
  readonly name: string;
  readonly help: string;
  readonly labels: L;
  /** Which combinations are told while they are 0: a series that begins with its first event hides it. */
  readonly possible?: (labels: Readonly<Record<string, string>>) => boolean;
}

export interface GaugeKind {
  readonly name: string;
  readonly help: string;
  /** Undefined: there is nothing to tell. */
  readonly read: () => number | undefined | Promise<number | undefined>;
  /** What several processes make of theirs. */
  readonly aggregator?: Aggregator;
}

export interface HistogramKind {
  readonly name: string;
  readonly help: string;
  /** Upper bounds, in seconds. */
  readonly bounds: readonly number[];
}

/** A gauge for each value of a label, all read together. */
export interface GaugesKind extends Omit<GaugeKind, 'read'> {
  readonly label: string;
  readonly read: () => Readonly<Record<string, number>>;
}

export interface TotalKind extends Omit<GaugeKind, 'read' | 'aggregator'> {
  readonly read: () => number;
}

export interface Instruments {
  readonly registry: Registry;
  readonly counter: <const L extends readonly Label[]>(
    kind: CounterKind<L>,
  ) => (...values: ValuesOf<L>) => void;
  /** One that is read as it is, and never falls. */
  readonly total: (kind: TotalKind) => void;
  readonly gauge: (kind: GaugeKind) => void;
  readonly gauges: (kind: GaugesKind) => void;
  /** Observes milliseconds. */
  readonly histogram: (kind: HistogramKind) => (ms: number) => void;
}

const PREFIX = 'afterword_';

export function createInstruments(): Instruments {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    counter({ name, help, labels, possible = () => true }) {
      const cells = createCells(labels);
      const counter = new Counter<string>({
        name: PREFIX + name,
        help,
        labelNames: labels.map(([label]) => label),
        registers,
        collect: () => cells.drain((combination, count) => counter.inc(combination, count)),
      });
      for (const combination of cells.combinations.filter(possible)) counter.inc(combination, 0);
      return (...values) => cells.add(values);
    },
    total({ name, help, read }) {
      let told = 0;
      const counter: Counter = new Counter({
        name: PREFIX + name,
        help,
        registers,
        collect() {
          const value = read();
          counter.inc(value - told);
          told = value;
        },
      });
    },
    gauge({ name, help, read, aggregator = 'sum' }) {
      const gauge: Gauge = new Gauge({
        name: PREFIX + name,
        help,
        registers,
        aggregator,
        async collect() {
          const value = await read();
          if (value === undefined) gauge.remove();
          else gauge.set(value);
        },
      });
    },
    gauges({ name, help, label, read, aggregator = 'sum' }) {
      const gauge = new Gauge<string>({
        name: PREFIX + name,
        help,
        labelNames: [label],
        registers,
        aggregator,
        collect() {
          for (const [value, number] of Object.entries(read())) gauge.set({ [label]: value }, number);
        },
      });
    },
    histogram({ name, help, bounds }) {
      const histogram = new Histogram({ name: PREFIX + name, help, buckets: [...bounds], registers });
      return ms => histogram.observe(ms / 1000);
    },
  };
}

interface Cells {
  readonly combinations: readonly Readonly<Record<string, string>>[];
  add(values: readonly string[]): void;
  /** Gives what has been added since the last time. */
  drain(take: (combination: Record<string, string>, count: number) => void): void;
}

/** Combinations are in the order of the digits of a number: the last label changes first. */
function createCells(labels: readonly Label[]): Cells {
  const combinations = labels.reduce<Record<string, string>[]>(
    (some, [name, values]) => some.flatMap(each => values.map(value => ({ ...each, [name]: value }))),
    [{}],
  );
  const digits = labels.map(([, values]) => new Map(values.map((value, digit) => [value, digit])));
  const counts = new Float64Array(combinations.length);
  return {
    combinations,
    add(values) {
      let cell = 0;
      for (let at = 0; at < digits.length; at += 1) {
        const { size } = digits[at]!;
        cell = cell * size + (digits[at]!.get(values[at]!) ?? size - 1);
      }
      counts[cell]! += 1;
    },
    drain(take) {
      for (const [cell, count] of counts.entries()) {
        if (count > 0) take(combinations[cell]!, count);
        counts[cell] = 0;
      }
    },
  };
}
