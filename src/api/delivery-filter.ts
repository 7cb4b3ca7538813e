/**
 * Which deliveries a request asks for: the names that lists, the live stream and redelivery in bulk have in
 * common, what the store makes of them, and whether one delivery is among them.
 */
import { z } from '@hono/zod-openapi';
import { parseDuration } from '../config/units.ts';
import { type DeliveryFilter, type DeliverySummary, hostOf } from '../store/ledger.ts';
import type { DeliveryState, FailureReason } from '../store/store.ts';
import { name, projectParameter, wrong } from './parameters.ts';

export const DELIVERY_STATES = [
  'pending',
  'delivered',
  'failed',
  'cancelled',
] as const satisfies readonly DeliveryState[];

export const FAILURE_REASONS = [
  'exhausted',
  'rejected',
  'blocked',
] as const satisfies readonly FailureReason[];

/** A moment as it is asked for: that one, or so long ago. */
type Moment = { readonly at: number } | { readonly ago: number };

const WRONG_MOMENT = wrong('must be a time in ISO 8601 with its zone, or a duration such as 24h');
const WRONG_STATUS = wrong('must be a status such as 503, or a class such as 5xx');
const WRONG_HOST = wrong('must be a host as in a URL, with its port where that is not the usual one');
const MAX_HOST = 300;

const isoTime = z.iso.datetime({ offset: true });

function readMoment(text: string): Moment | undefined {
  const ago = parseDuration(text);
  if (ago !== undefined) return { ago };
  return isoTime.safeParse(text).success ? { at: Date.parse(text) } : undefined;
}

function readStatus(text: string): { from: number; to: number } {
  const from = Number(text.replace('xx', '00'));
  return { from, to: text.endsWith('xx') ? from + 99 : from };
}

const moment = (description: string) =>
  z
    .string(WRONG_MOMENT)
    .transform(readMoment)
    .pipe(z.custom<Moment>(read => read !== undefined, WRONG_MOMENT))
    .optional()
    .openapi({ type: 'string', example: '24h', description });

export const FILTER = {
  project: projectParameter,
  app: name('an app').optional(),
  state: z.enum(DELIVERY_STATES, wrong(`must be one of ${DELIVERY_STATES.join(', ')}`)).optional(),
  reason: z
    .enum(FAILURE_REASONS, wrong(`must be one of ${FAILURE_REASONS.join(', ')}`))
    .optional()
    .openapi({ description: 'Why it failed' }),
  host: z
    .string(WRONG_HOST)
    .regex(/^[^\s/?#@\\]+$/, WRONG_HOST)
    .max(MAX_HOST, WRONG_HOST)
    .toLowerCase()
    .optional()
    .openapi({ example: 'receiver.example:8443', description: 'Host of its target' }),
  status: z
    .string(WRONG_STATUS)
    .regex(/^[1-9](?:\d\d|xx)$/, WRONG_STATUS)
    .transform(readStatus)
    .optional()
    .openapi({ type: 'string', example: '5xx', description: 'What the receiver answered last' }),
  since: moment('By the time in its run id: from then on, or from so long ago'),
  until: moment('By the time in its run id: before then, or before so long ago'),
};

const Filter = z.object(FILTER);

/** `projectId`: the project that the request may ask for, and does. */
export function filterOf(
  asked: z.output<typeof Filter>,
  { projectId, now }: { readonly projectId: string | undefined; readonly now: number },
): DeliveryFilter {
  const { app, state, reason, host, status, since, until } = asked;
  const at = (moment: Moment): number => ('at' in moment ? moment.at : Math.max(0, now - moment.ago));
  return {
    ...(projectId !== undefined && { projectId }),
    ...(app !== undefined && { app }),
    ...(state !== undefined && { state }),
    ...(reason !== undefined && { reason }),
    ...(host !== undefined && { host }),
    ...(status !== undefined && { status }),
    ...(since !== undefined && { since: at(since) }),
    ...(until !== undefined && { until: at(until) }),
  };
}

/** Whether a delivery, as it is now, is one that the filter asks for. */
export function matches(filter: DeliveryFilter, delivery: DeliverySummary): boolean {
  const { projectId, app, state, reason, host, status, since = 0, until = Infinity } = filter;
  const { lastStatus } = delivery;
  const at = timeIn(delivery.runId);
  return (
    (projectId === undefined || projectId === delivery.projectId) &&
    (app === undefined || app === delivery.app) &&
    (state === undefined || state === delivery.state) &&
    (reason === undefined || reason === delivery.reason) &&
    (host === undefined || host === hostOf(delivery.target)) &&
    (status === undefined ||
      (lastStatus !== undefined && lastStatus >= status.from && lastStatus <= status.to)) &&
    at >= since &&
    at < until
  );
}

/** Of a UUIDv7, in milliseconds since the epoch (RFC 9562, 5.7). */
function timeIn(runId: string): number {
  return Number.parseInt(runId.replace('-', '').slice(0, 12), 16);
}
