/**
 * How runs are printed: a table of many, the facts and the answer of one, and JSON where nobody reads along.
 */
import type { Clock } from '../clock.ts';
import { pour } from './client.ts';
import { readableDate, readableTime } from './elapsed.ts';
import { type Column, factLines } from './layout.ts';
import { type Colour, Failed, type Io, isTerminal, printable } from './output.ts';
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

/** Of a list. */
export function runColumns(clock: Clock): readonly Column<RunFacts>[] {
  return [
    { title: 'RUN', cell: run => run.run_id },
    { title: 'APP', cell: run => run.app },
    { title: 'STATE', cell: stateOf, colour: run => COLOURS[run.state] },
    { title: 'CREATED', cell: run => readableDate(run.created_at) },
    { title: 'TIME', cell: run => timeOf(run, clock.now()) },
    { title: 'DELIVERY', cell: deliveryOf },
  ];
}

export function stateOf({ state, cancelling }: RunFacts): string {
  return cancelling ? `${state}, to be cancelled` : state;
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
  const lines = factLines(io.stdout, [
    ['run', facts.run_id],
    ['app', facts.app],
    ['state', stateOf(facts), COLOURS[facts.state]],
    ['status', facts.status_code?.toString()],
    ['error', error && [error.type, error.message].filter(Boolean).join(': ')],
    ['created', readableDate(facts.created_at)],
    ['time', timeOf(facts, now)],
    ['starts', facts.starts > 1 ? String(facts.starts) : ''],
    ['delivery', delivery && `${deliveryOf(facts)}, to ${delivery.target}`],
  ]);
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
