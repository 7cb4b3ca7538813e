/**
 * How commands lay out what people read on a terminal: tables that grow, and the facts of one thing.
 */
import { type Colour, paint, printable } from './output.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  readonly colour?: (row: Row) => Colour;
}

const GAP = '  ';
/** Below this, a cut-off cell tells nothing. */
const NARROWEST = 10;

/** Its columns are as wide as the first rows need; in a narrow terminal the last one gives way. */
export function createTable<Row>(
  stream: NodeJS.WritableStream,
  columns: readonly Column<Row>[],
): { add(rows: readonly Row[]): void } {
  let widths: readonly number[] | undefined;
  const fit = (cell: string, at: number): string =>
    at < columns.length - 1 ? cell.padEnd(widths![at]!) : shortened(cell, roomFor(stream, widths!));

  function begin(rows: readonly (readonly string[])[]): void {
    widths = columns.map(({ title }, at) => Math.max(title.length, ...rows.map(cells => cells[at]!.length)));
    const titles = columns.map(({ title }, at) => fit(title, at)).join(GAP);
    stream.write(`${paint(stream, 'dim', titles)}\n`);
  }

  return {
    add(rows) {
      if (rows.length === 0) return;
      const cells = rows.map(row => columns.map(({ cell }) => printable(cell(row))));
      if (widths === undefined) begin(cells);
      for (const [index, row] of rows.entries()) {
        const shown = columns.map(({ colour }, at) => {
          const text = fit(cells[index]![at]!, at);
          return colour === undefined ? text : paint(stream, colour(row), text);
        });
        stream.write(`${shown.join(GAP).trimEnd()}\n`);
      }
    },
  };
}

/** What the other columns leave to the last one, where the terminal tells how wide it is. */
function roomFor(stream: NodeJS.WritableStream, widths: readonly number[]): number {
  if (!('columns' in stream) || typeof stream.columns !== 'number') return Number.POSITIVE_INFINITY;
  const others = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
  return Math.max(NARROWEST, stream.columns - others);
}

export function shortened(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

/** What is undefined or empty is left out. */
export type Fact = readonly [name: string, value: string | undefined, colour?: Colour];

export function factLines(stream: NodeJS.WritableStream, facts: readonly Fact[]): string[] {
  return facts.flatMap(([name, value, colour]) => {
    if (value === undefined || value === '') return [];
    const text = printable(value);
    return `${name.padEnd(10)}${colour === undefined ? text : paint(stream, colour, text)}`;
  });
}
