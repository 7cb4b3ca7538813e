/**
 * The shapes that the page reads are those that the service's schemas make: `tsc` compares them, both ways, and
 * fails where they differ.
 */
import type { z } from '@hono/zod-openapi';
import { describe, expectTypeOf, it } from 'vitest';
import type * as page from '../../dashboard/src/api/shapes.ts';
import type { AppList } from '../../src/api/app-routes.ts';
import type * as deliveries from '../../src/api/delivery-contract.ts';
import type { Run, RunFacts, RunList, RunWithAnswer } from '../../src/api/run-contract.ts';
import type { Stats, StatsSpan, WindowName } from '../../src/api/stats-contract.ts';

type Told<Schema extends z.ZodType> = z.output<Schema>;
type Detail = Told<typeof deliveries.DeliveryDetail>;
type App = Told<typeof AppList>['apps'][number];

describe('the page reads what the service tells of', () => {
  it('deliveries', () => {
    expectTypeOf<page.Delivery>().toEqualTypeOf<Told<typeof deliveries.Delivery>>();
    expectTypeOf<page.DeliveryState>().toEqualTypeOf<Detail['state']>();
    expectTypeOf<page.FailureReason>().toEqualTypeOf<NonNullable<Detail['reason']>>();
    expectTypeOf<page.DeliveryList>().toEqualTypeOf<Told<typeof deliveries.DeliveryList>>();
  });

  it('one delivery', () => {
    expectTypeOf<page.Attempt>().toEqualTypeOf<Told<typeof deliveries.Attempt>>();
    expectTypeOf<page.Timings>().toEqualTypeOf<page.Attempt['timings']>();
    expectTypeOf<page.AttemptError>().toEqualTypeOf<NonNullable<page.Attempt['error']>>();
    expectTypeOf<page.DeliveryRequest>().toEqualTypeOf<NonNullable<Detail['request']>>();
    expectTypeOf<page.RunFacts>().toEqualTypeOf<NonNullable<Detail['run']>>();
    expectTypeOf<page.DeliveryDetail>().toEqualTypeOf<Detail>();
  });

  it('redelivery in bulk', () => {
    expectTypeOf<page.Counted>().toEqualTypeOf<Told<typeof deliveries.Counted>>();
    expectTypeOf<page.JobAccepted>().toEqualTypeOf<Told<typeof deliveries.JobAccepted>>();
    expectTypeOf<page.Job>().toEqualTypeOf<Told<typeof deliveries.Job>>();
  });

  it('runs', () => {
    expectTypeOf<page.RunState>().toEqualTypeOf<Told<typeof RunFacts>['state']>();
    expectTypeOf<page.RunDelivery>().toEqualTypeOf<NonNullable<Told<typeof RunFacts>['delivery']>>();
    expectTypeOf<page.Run>().toEqualTypeOf<Told<typeof Run>>();
    expectTypeOf<page.RunWithAnswer>().toEqualTypeOf<Told<typeof RunWithAnswer>>();
    expectTypeOf<page.RunList>().toEqualTypeOf<Told<typeof RunList>>();
  });

  it('numbers', () => {
    expectTypeOf<page.WindowName>().toEqualTypeOf<WindowName>();
    expectTypeOf<page.StatsSpan>().toEqualTypeOf<Told<typeof StatsSpan>>();
    expectTypeOf<page.StatsCounts>().toEqualTypeOf<Omit<Told<typeof StatsSpan>, 'at'>>();
    expectTypeOf<page.Stats>().toEqualTypeOf<Told<typeof Stats>>();
  });

  it('apps', () => {
    expectTypeOf<page.AppFacts>().toEqualTypeOf<App>();
    expectTypeOf<page.Replica>().toEqualTypeOf<App['replicas'][number]>();
    expectTypeOf<page.AppList>().toEqualTypeOf<Told<typeof AppList>>();
  });
});
