/**
 * How deliveries are printed where people read along: the columns of a list, and the line of one that changes.
 */
import type { Clock } from '../../clock.ts';
import type { DeliveryState } from '../../store/store.ts';
import { readableTime } from '../elapsed.ts';
import type { Column } from '../layout.ts';
import { type Colour, type Io, paint, printable } from '../output.ts';
import type { DeliveryFacts } from './answer.ts';

export const DELIVERY_COLOURS: Readonly<Record<DeliveryState, Colour>> = {
  pending: 'bold',
  delivered: 'green',
  failed: 'red',
  cancelled: 'yellow',
};

/** Of a list. The age is short, and leaves the room to the target. */
export function deliveryColumns(clock: Clock): readonly Column<DeliveryFacts>[] {
  return [
    {
      title: 'AGE',
      cell: delivery => readableTime(Math.max(0, clock.now() - Date.parse(delivery.created_at))),
    },
    { title: 'RUN', cell: delivery => delivery.run_id },
    { title: 'APP', cell: delivery => delivery.app },
    { title: 'STATE', cell: standingOf, colour: delivery => DELIVERY_COLOURS[delivery.state] },
    { title: 'ANSWER', cell: answerOf },
    { title: 'ATTEMPTS', cell: delivery => String(delivery.attempt_count) },
    { title: 'TARGET', cell: delivery => delivery.target },
  ];
}

/** The state, and why. */
export function standingOf({ state, reason }: Pick<DeliveryFacts, 'state' | 'reason'>): string {
  return reason === undefined ? state : `${state}: ${reason}`;
}

/** What the receiver answered last, or why there was no answer. */
function answerOf({ last_status: status, last_error: error }: DeliveryFacts): string {
  return status?.toString() ?? error ?? '';
}

export function printChange(io: Io, delivery: DeliveryFacts, now: number): void {
  const { run_id: runId, app, state, attempt_count: attempts, target } = delivery;
  const answer = answerOf(delivery);
  const told = [
    paint(io.stdout, 'dim', clockTime(now)),
    runId,
    printable(app),
    paint(io.stdout, DELIVERY_COLOURS[state], standingOf(delivery)),
    attempts === 0 ? '' : `${answer} at attempt ${attempts}`,
    printable(target),
  ];
  io.stdout.write(`${told.filter(each => each !== '').join('  ')}\n`);
}

export function clockTime(now: number): string {
  return new Date(now).toISOString().slice(11, 23);
}
