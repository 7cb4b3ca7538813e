/**
 * How runs are printed: a table of many, the facts and the answer of one, and JSON where nobody reads along.
 */
import type { Clock } from '../clock.ts';
import { pour } from './client.ts';
import { readableTime } from './elapsed.ts';
import { type Colour, Failed, type Io, isTerminal, paint, printable } from './output.ts';
import { indentJson } from './received.ts';
import { answerIn, type RunAnswer, type RunFacts } from './run-answer.ts';
import type { RunState } from '../store/runs.ts';

const NEWLINE = 0x0a;

const COLOURS: Readonly<Record<RunState, Colour>> = {
  queued: 'dim',
  running: 'bold',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'yellow',
};

const COLUMNS = ['RUN', 'APP', 'STATE', 'CREATED', 'TIME', 'DELIVERY'] as const;
const STATE_COLUMN = COLUMNS.indexOf('STATE');

/** The lines of a table that grows: its columns are as wide as the first runs need. */
export function createTable(io: Io, clock: Clock): { add(runs: readonly RunFacts[]): void } {
  let widths: readonly number[] | undefined;
  return {
    add(runs) {
      const rows = runs.map(run => cellsOf(run, clock.now()).map(printable));
      const fresh = widths === undefined;
      widths ??= COLUMNS.map((title, at) => Math.max(title.length, ...rows.map(cells => cells[at]!.length)));
      const padded = (cells: readonly string[]) => cells.map((cell, at) => cell.padEnd(widths![at]!));
      if (fresh) io.stdout.write(`${paint(io.stdout, 'dim', padded(COLUMNS).join('  ').trimEnd())}\n`);
      for (const [index, cells] of rows.entries()) {
        const shown = padded(cells);
        shown[STATE_COLUMN] = paint(io.stdout, COLOURS[runs[index]!.state], shown[STATE_COLUMN]!);
        io.stdout.write(`${shown.join('  ').trimEnd()}\n`);
      }
    },
  };
}

function cellsOf(run: RunFacts, now: number): string[] {
  return [run.run_id, run.app, stateOf(run), dateOf(run.created_at), timeOf(run, now), deliveryOf(run)];
}

export function stateOf({ state, cancelling }: RunFacts): string {
  return cancelling ? `${state}, to be cancelled` : state;
}

function dateOf(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')}Z`;
}

/** From its last start to its end, or to now. */
function timeOf({ started_at: started, ended_at: ended }: RunFacts, now: number): string {
  if (started === undefined) return '';
  return readableTime(Math.max(0, (ended === undefined ? now : Date.parse(ended)) - Date.parse(started)));
}

function deliveryOf({ delivery }: RunFacts): string {
  if (delivery === undefined) return '';
  const { state = 'not yet', reason, attempts = 0 } = delivery;
  const why = reason === undefined ? '' : `: ${reason}`;
  return `${state}${why}${attempts > 1 ? ` (${attempts} attempts)` : ''}`;
}

/** As it came where `json` is asked for, and where nobody reads along. */
export async function printRun(io: Io, run: RunAnswer, { json, now }: { json: boolean; now: number }) {
  if (!json && isTerminal(io.stdout)) io.stdout.write(readable(io, run, now));
  else if ((await pour(run.body, io.stdout)) !== NEWLINE) io.stdout.write('\n');
}

function readable(io: Io, { facts, head, whole }: RunAnswer, now: number): string {
  const { delivery, error } = facts;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['run', facts.run_id],
    ['app', facts.app],
    ['state', stateOf(facts)],
    ['status', facts.status_code?.toString()],
    ['error', error && [error.type, error.message].filter(Boolean).join(': ')],
    ['created', dateOf(facts.created_at)],
    ['time', timeOf(facts, now)],
    ['starts', facts.starts > 1 ? String(facts.starts) : ''],
    ['delivery', delivery && `${deliveryOf(facts)}, to ${delivery.target}`],
  ];
  const lines = rows
    .filter((row): row is readonly [string, string] => Boolean(row[1]))
    .map(([name, value]) => {
      const text = printable(value);
      return `${name.padEnd(10)}${name === 'state' ? paint(io.stdout, COLOURS[facts.state], text) : text}`;
    });
  const answer = indentJson(answerIn(head)).split('\n').map(printable);
  const more = whole ? [] : [`… the whole of it: ${io.program} runs show ${facts.run_id} --json`];
  return [...lines, ...answer, ...more].filter(line => line !== '').join('\n') + '\n';
}

/** The line that tells of a run which did not succeed. */
export function failureOf({ state, status_code: status, error }: RunFacts): Failed {
  const why =
    error === undefined ? (status === undefined ? '' : ` with status ${status}`) : `: ${error.type}`;
  return new Failed(state === 'cancelled' ? 'the run was cancelled' : `the run failed${why}`);
}
