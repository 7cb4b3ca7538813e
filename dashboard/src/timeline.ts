/**
 * What happened to a call, in order: it came in, its function ran, the answer was captured, attempts were made.
 * Of each attempt, the parts that its time was spent on.
 */
import type { Attempt, DeliveryDetail, DeliveryState, FailureReason, Timings } from './api/shapes.ts';

export type PhaseName = 'queue' | 'dns' | 'connect' | 'tls' | 'first_byte' | 'rest';

/** A part of an attempt. They follow each other, and together they are all of its time. */
export interface Phase {
  readonly name: PhaseName;
  readonly ms: number;
  /** Of the whole, from 0 to 1. */
  readonly share: number;
}

export interface PhaseText {
  readonly label: string;
  readonly title: string;
}

export const PHASES: Readonly<Record<PhaseName, PhaseText>> = {
  queue: { label: 'Queue', title: 'From the moment it was due until it was begun' },
  dns: { label: 'DNS', title: 'Looking up the name of the target' },
  connect: { label: 'Connect', title: 'Opening the connection' },
  tls: { label: 'TLS', title: 'The handshake, and checking the certificate' },
  first_byte: { label: 'First byte', title: 'Sending the request, and waiting for the answer to begin' },
  rest: { label: 'Rest', title: 'Reading the answer, and what the service itself needed' },
};

const UNANSWERED: PhaseText = { label: 'Without answer', title: 'All other time: no answer began' };

/** Steps come in the order of their time, in milliseconds since the epoch. */
export type Step =
  | { readonly kind: 'called'; readonly at: number }
  | { readonly kind: 'begun'; readonly at: number; readonly waitedMs: number; readonly starts: number }
  | { readonly kind: 'ran'; readonly at: number; readonly ms: number | undefined; readonly status: number }
  | { readonly kind: 'captured'; readonly at: number }
  | AttemptStep
  | { readonly kind: 'next'; readonly at: number }
  | {
      readonly kind: 'settled';
      readonly at: number;
      readonly state: Exclude<DeliveryState, 'pending'>;
      readonly reason: FailureReason | undefined;
    };

export interface AttemptStep {
  readonly kind: 'attempt';
  readonly at: number;
  readonly attempt: Attempt;
  /** Since the attempt before it in the same round had ended, where that is known, until it was due. */
  readonly pauseMs: number | undefined;
  /** It is the first of a round, and there are several. */
  readonly opensRound: boolean;
  /** The next attempt of the round came to the same. */
  readonly repeated: boolean;
}

/** The moment at which a call came in is in its run id (RFC 9562, 5.7); undefined where it is none. */
export function timeIn(runId: string): number | undefined {
  const found = /^([0-9a-f]{8})-([0-9a-f]{4})-7/i.exec(runId);
  return found === null ? undefined : Number.parseInt(found[1]! + found[2]!, 16);
}

/** `ranMs`: how long the call took, as the body of the delivery tells it. */
export function stepsOf(delivery: DeliveryDetail, ranMs: number | undefined): Step[] {
  const captured = Date.parse(delivery.created_at);
  return [
    { kind: 'called', at: timeIn(delivery.run_id) ?? captured },
    ...runSteps(delivery, ranMs, captured),
    { kind: 'captured', at: captured },
    ...attemptSteps(delivery),
    ...endSteps(delivery),
  ];
}

function runSteps({ run, status_code }: DeliveryDetail, ranMs: number | undefined, captured: number): Step[] {
  if (run === undefined) return [{ kind: 'ran', at: captured, ms: ranMs, status: status_code }];
  const { created_at, started_at, ended_at, starts } = run;
  const ended = ended_at === undefined ? captured : Date.parse(ended_at);
  if (started_at === undefined) return [{ kind: 'ran', at: ended, ms: undefined, status: status_code }];
  const began = Date.parse(started_at);
  return [
    { kind: 'begun', at: began, waitedMs: Math.max(0, began - Date.parse(created_at)), starts },
    { kind: 'ran', at: ended, ms: ranMs ?? ended - began, status: status_code },
  ];
}

function attemptSteps({ attempts }: DeliveryDetail): AttemptStep[] {
  const several = attempts.some(({ round }) => round > 1);
  return attempts.map((attempt, index) => {
    const before = attempts[index - 1];
    const same = before?.round === attempt.round;
    return {
      kind: 'attempt',
      at: Date.parse(attempt.started_at),
      attempt,
      pauseMs: same ? pauseBetween(before, attempt) : undefined,
      opensRound: several && !same,
      repeated: isSame(attempt, attempts[index + 1]),
    };
  });
}

function isSame({ round, status, error }: Attempt, next: Attempt | undefined): boolean {
  return next?.round === round && next.status === status && next.error?.code === error?.code;
}

/** The time in the queue is a part of the attempt, and not of the pause before it. */
function pauseBetween(before: Attempt, after: Attempt): number | undefined {
  if (!isMeasured(before.timings)) return undefined;
  const ended = Date.parse(before.started_at) + before.timings.total;
  return Math.max(0, Date.parse(after.started_at) - after.timings.queue - ended);
}

function endSteps({ state, reason, settled_at, next_attempt_at }: DeliveryDetail): Step[] {
  if (state === 'pending')
    return next_attempt_at === undefined ? [] : [{ kind: 'next', at: Date.parse(next_attempt_at) }];
  return settled_at === undefined ? [] : [{ kind: 'settled', at: Date.parse(settled_at), state, reason }];
}

/** Nobody knows how long an attempt took that the end of the service cut off. */
export function isMeasured({ total }: Timings): boolean {
  return total > 0;
}

/**
 * The service tells each part for itself, and the total from the beginning on without the queue; what no part
 * covers is the rest.
 */
export function phasesOf(timings: Timings): Phase[] {
  if (!isMeasured(timings)) return [];
  const { queue, dns, connect, tls, first_byte, total } = timings;
  const parts = Object.entries({ queue, dns, connect, tls, first_byte }) as [PhaseName, number | undefined][];
  const measured = parts.filter((part): part is [PhaseName, number] => part[1] !== undefined);
  const sum = measured.reduce((sum, [, ms]) => sum + ms, 0);
  const whole = Math.max(sum, queue + total);
  return [...measured, ['rest', whole - sum] as const].map(([name, ms]) => ({ name, ms, share: ms / whole }));
}

/** What a part is called; the rest of an attempt that nobody answered is no reading of an answer. */
export function phaseText(name: PhaseName, { first_byte }: Timings): PhaseText {
  return name === 'rest' && first_byte === undefined ? UNANSWERED : PHASES[name];
}

/** Whether an attempt went over a connection that was open from one before. */
export function foundConnectionOpen({ connect, first_byte }: Timings): boolean {
  return connect === undefined && first_byte !== undefined;
}

/** `in 3 s`; undefined once it is due. */
export function countdown(at: number, now: number): string | undefined {
  const seconds = Math.ceil((at - now) / 1000);
  return seconds > 0 ? `in ${seconds} s` : undefined;
}
