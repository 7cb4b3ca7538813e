/**
 * Deliveries over HTTP: list them, look at one with all that is known of it, give one a new round, end one.
 */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { createRoute, type RouteConfigToTypedResponse } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Clock } from '../clock.ts';
import type { TargetPolicy } from '../delivery/target.ts';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Redelivered } from '../store/ledger.ts';
import type { DeliveryRecord, Store } from '../store/store.ts';
import { cursorAt } from './cursor.ts';
import {
  DeliveryDetail,
  DeliveryList,
  DeliveryListQuery,
  DeliveryParams,
  DeliveryQuery,
  IdempotencyHeader,
  RedeliverBody,
} from './delivery-contract.ts';
import { filterOf } from './delivery-filter.ts';
import { deliveryJson, detailJson } from './delivery-json.ts';
import { type DeliveryHeaders, requestOpening } from './delivery-request.ts';
import { idempotencyOf } from './idempotency.ts';
import { bodyOf, readJson } from './json-body.ts';
import { problemAnswers } from './problems.ts';
import { answerOf, type ApiEnv, createRouter, described, projectOf, type Router } from './router.ts';
import type { Runs } from './run-routes.ts';
import { openAnswer, sendAnswer } from './stored-answer.ts';
import { readTarget } from './redelivery-target.ts';

export interface DeliveryRoutesOptions {
  readonly store: Pick<Store, 'available' | 'find' | 'ledger'>;
  readonly runs: Pick<Runs, 'find'>;
  readonly policy: Pick<TargetPolicy, 'judgeUrl'>;
  /** What is sent besides, by project. */
  readonly headers: DeliveryHeaders;
  readonly onCancelled?: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

const listDeliveries = createRoute({
  method: 'get',
  path: '/',
  operationId: 'listDeliveries',
  summary: 'Lists deliveries, the newest first',
  request: { query: DeliveryListQuery },
  responses: { 200: answerOf(DeliveryList, 'A page of deliveries'), ...problemAnswers(['invalid_query']) },
});

const getDelivery = createRoute({
  method: 'get',
  path: '/{run_id}',
  operationId: 'getDelivery',
  summary: 'Tells all that is known of a delivery',
  request: { params: DeliveryParams, query: DeliveryQuery },
  responses: {
    200: answerOf(DeliveryDetail, 'The delivery, with its attempts and what is sent'),
    ...problemAnswers(['invalid_query', 'delivery_not_found']),
  },
});

const redeliver = createRoute({
  method: 'post',
  path: '/{run_id}/redeliver',
  operationId: 'redeliver',
  summary: 'Gives a delivery that has ended a new round of attempts, freshly signed',
  request: { params: DeliveryParams },
  responses: {
    202: answerOf(DeliveryDetail, 'The delivery as it then is'),
    ...problemAnswers([
      'invalid_body',
      'forbidden_target',
      'invalid_idempotency_key',
      'delivery_not_found',
      'delivery_pending',
      'request_too_large',
      'idempotency_key_reused',
      'secret_unreadable',
      'store_unavailable',
    ]),
  },
});

const cancelDelivery = createRoute({
  method: 'post',
  path: '/{run_id}/cancel',
  operationId: 'cancelDelivery',
  summary: 'Ends a pending delivery; an attempt under way may still reach its receiver',
  request: { params: DeliveryParams },
  responses: {
    200: answerOf(DeliveryDetail, 'The delivery as it then is'),
    ...problemAnswers(['delivery_not_found', 'delivery_settled', 'store_unavailable']),
  },
});

export const DELIVERY_ROUTES = [
  listDeliveries,
  getDelivery,
  described(redeliver, { headers: IdempotencyHeader, body: bodyOf(RedeliverBody, false) }),
  cancelDelivery,
];

type DetailResponse = RouteConfigToTypedResponse<typeof getDelivery>;

/** What a redelivery that was not made is answered with. */
const REFUSED = {
  pending: 'delivery_pending',
  not_found: 'delivery_not_found',
  conflict: 'idempotency_key_reused',
  unreadable: 'secret_unreadable',
} as const;

export function createDeliveryRoutes(options: DeliveryRoutesOptions): Router {
  const { store, runs, policy, headers, onCancelled, clock, log } = options;
  const { ledger } = store;

  async function find(c: Context<ApiEnv>, runId: string): Promise<DeliveryRecord> {
    const { projectId } = c.env.call;
    const delivery = await store.find(runId);
    if (delivery === undefined || (projectId !== undefined && delivery.projectId !== projectId)) {
      throw new Problem('delivery_not_found');
    }
    return delivery;
  }

  async function detailOf(delivery: DeliveryRecord) {
    return detailJson(delivery, await runs.find(delivery.projectId, delivery.runId));
  }

  /** The detail, and what is sent, which passes through as it is stored. */
  async function answerWithBody(c: Context<ApiEnv>, delivery: DeliveryRecord): Promise<DetailResponse> {
    const detail = await detailOf(delivery);
    const request = headers.requestOf(delivery);
    const body = await ledger.content(delivery.runId);
    await using stored = body && (await openAnswer(body));
    if (stored === undefined) return c.json({ ...detail, request: { ...request, body: null } }, 200);
    const { res, call } = c.env;
    const around = { opening: requestOpening(detail, request), closing: '}}' };
    await sendAnswer(res, around, stored, error => {
      log.error({ err: error, run_id: call.runId }, 'the body of a delivery could not be read to its end');
    });
    return RESPONSE_ALREADY_SENT as DetailResponse & Response;
  }

  return createRouter('delivery_not_found')
    .openapi(listDeliveries, async c => {
      const { limit, cursor, project, ...asked } = c.req.valid('query');
      const filter = filterOf(asked, { projectId: projectOf(c.env.call, project), now: clock.now() });
      const page = { limit, ...(cursor !== undefined && { before: cursor }) };
      const { deliveries, next } = await ledger.list(filter, page);
      const nextCursor = next === undefined ? null : cursorAt(next);
      return c.json({ deliveries: deliveries.map(deliveryJson), next_cursor: nextCursor }, 200);
    })
    .openapi(getDelivery, async c => {
      const delivery = await find(c, c.req.valid('param').run_id);
      const { exclude } = c.req.valid('query');
      if (exclude === undefined) return answerWithBody(c, delivery);
      return c.json({ ...(await detailOf(delivery)), request: headers.requestOf(delivery) }, 200);
    })
    .openapi(redeliver, async c => {
      const { target } = await readJson(c.req.raw, RedeliverBody);
      const to = target === undefined ? undefined : readTarget(target, policy);
      const { runId, projectId } = await find(c, c.req.valid('param').run_id);
      const idempotency = idempotencyOf(c.req.header('Idempotency-Key'), [runId, target ?? null]);
      checkStore(store);
      const { outcome }: Redelivered = await ledger.redeliver({
        runId,
        projectId,
        at: clock.now(),
        ...(to !== undefined && { to }),
        ...(idempotency !== undefined && { idempotency }),
      });
      if (outcome !== 'redelivered' && outcome !== 'repeated') throw new Problem(REFUSED[outcome]);
      return c.json(await detailOf(await find(c, runId)), 202);
    })
    .openapi(cancelDelivery, async c => {
      const { runId, projectId } = await find(c, c.req.valid('param').run_id);
      checkStore(store);
      const outcome = await ledger.cancel(runId, clock.now(), projectId);
      if (outcome === 'not_found') throw new Problem('delivery_not_found');
      if (outcome === 'settled') throw new Problem('delivery_settled');
      onCancelled?.();
      return c.json(await detailOf(await find(c, runId)), 200);
    });
}

/** What cannot be written now would keep whoever asks waiting until it can. */
export function checkStore({ available }: Pick<Store, 'available'>): void {
  if (!available) throw new Problem('store_unavailable', undefined, ['Retry-After', '1']);
}
