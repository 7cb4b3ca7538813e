/**
 * One delivery where people read along: its facts, its attempts as a table, what their errors mean and what to
 * do about them, and, where it is asked for, the request that is sent.
 */

import { readableDate, readableTime } from '../elapsed.ts';
import { type Column, createTable, factLines, shortened } from '../layout.ts';
import { type Io, paint, printable } from '../output.ts';
import { indentJson } from '../received.ts';
import type { DeliveryDetails, DeliveryWithBody } from './answer.ts';
import { DELIVERY_COLOURS, standingOf } from './view.ts';

type Attempt = DeliveryDetails['attempts'][number];

const EXCERPT_WIDTH = 100;
/** Beyond what anybody reads on a terminal. */
const SHOWN_BYTES = 64 * 1024;

export function printDetails(io: Io, details: DeliveryDetails, now: number): void {
  const { attempts } = details;
  io.stdout.write(`${factLines(io.stdout, factsOf(details, now)).join('\n')}\n`);
  if (attempts.length === 0) return;
  io.stdout.write('\n');
  createTable(io.stdout, columnsFor(attempts)).add(attempts);
  const explained = explanationsOf(attempts);
  if (explained.length > 0) io.stdout.write(`\n${explained.map(printable).join('\n')}\n`);
}

function factsOf(details: DeliveryDetails, now: number): Parameters<typeof factLines>[1] {
  const { settled_at: settled, next_attempt_at: next, round } = details;
  return [
    ['run', details.run_id],
    ['app', details.app],
    ['target', details.target],
    ['otherwise', details.own_target],
    ['state', standingOf(details), DELIVERY_COLOURS[details.state]],
    ['call', `answered with ${details.status_code}${details.run === undefined ? '' : ', asynchronous'}`],
    ['created', readableDate(details.created_at)],
    ['settled', settled && readableDate(settled)],
    ['next', next && nextOf(next, now)],
    ['round', round > 1 ? String(round) : ''],
    ['trace', details.trace_id],
    ['answer', lastExcerpt(details.attempts)],
  ];
}

function nextOf(iso: string, now: number): string {
  const ms = Date.parse(iso) - now;
  return ms > 0 ? `attempt in ${readableTime(ms)}` : 'attempt is due';
}

function lastExcerpt(attempts: readonly Attempt[]): string | undefined {
  const { excerpt = '', excerpt_encoding: encoding } = attempts.at(-1) ?? {};
  if (encoding !== undefined) return 'no text';
  return shortened(excerpt.trim().split(/[\r\n]/, 1)[0]!, EXCERPT_WIDTH);
}

function columnsFor(attempts: readonly Attempt[]): Column<Attempt>[] {
  const elsewhere = attempts.some(({ target }) => target !== undefined);
  return [
    { title: 'ATTEMPT', cell: ({ round, number }) => `${round}.${number}` },
    { title: 'TRIGGER', cell: ({ trigger }) => trigger },
    { title: 'STARTED', cell: attempt => readableDate(attempt.started_at) },
    {
      title: 'ANSWER',
      cell: ({ status, error }) => status?.toString() ?? error?.code ?? '',
      colour: ({ status = 0 }) => (status >= 200 && status < 300 ? 'green' : 'red'),
    },
    { title: 'PHASES', cell: ({ timings }) => phasesOf(timings) },
    ...(elsewhere ? [{ title: 'TARGET', cell: ({ target = '' }: Attempt) => target }] : []),
  ];
}

function phasesOf(timings: Attempt['timings']): string {
  return Object.entries(timings)
    .map(([phase, ms]) => `${phase.replace('_', ' ')} ${readableTime(ms!)}`)
    .join(', ');
}

/** Each code once, however many attempts ended with it. */
function explanationsOf(attempts: readonly Attempt[]): string[] {
  const errors = new Map(attempts.flatMap(({ error }) => (error === undefined ? [] : [[error.code, error]])));
  return [...errors.values()].map(({ code, meaning, advice }) => `${code}: ${meaning} ${advice}`);
}

/** The request as it is sent, without what is secret in it. */
export function printRequest(io: Io, { details, body }: DeliveryWithBody): void {
  const { method, url, headers, signed } = details.request!;
  const lines = [
    paint(io.stdout, 'bold', printable(`${method} ${url}`)),
    ...Object.entries(headers).map(([name, value]) => printable(`${name}: ${value}`)),
    ...(signed ? [paint(io.stdout, 'dim', 'and a signature, made anew for each attempt')] : []),
    '',
    ...(body === undefined ? ['the body is gone'] : bodyLines(io, details, body)),
  ];
  io.stdout.write(`\n${lines.join('\n')}\n`);
}

function bodyLines(io: Io, { run_id: runId }: DeliveryDetails, body: Buffer): string[] {
  const shown = indentJson(body.toString('utf8', 0, SHOWN_BYTES))
    .split('\n')
    .map(printable);
  if (body.length <= SHOWN_BYTES) return shown;
  return [...shown, `… the whole of it: ${io.program} deliveries show ${runId} --body --json`];
}
