/**
 * Redelivery in bulk: counted first, then done by a job in the background, whose progress can be asked for.
 */
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { silentLogger } from '../../src/log.ts';
import { createRedeliveries } from '../../src/redelivery.ts';
import type { Job, Ledger } from '../../src/store/ledger.ts';
import { ManualClock } from '../support/clock.ts';
import { until } from '../support/waiting.ts';
import { countMatching } from '../../src/api/counting.ts';
import { openRig, PROJECT, type Rig } from './rig.ts';

const BULK = `/v4/${PROJECT}/_deliveries/redeliver`;
const FAILED = { state: 'failed', reason: 'exhausted' } as const;

function post(rig: Rig, body: unknown, headers: Record<string, string> = {}) {
  return rig.get(BULK, { method: 'POST', body: JSON.stringify(body), headers });
}

async function failMany(rig: Rig, count: number, projectId = PROJECT): Promise<string[]> {
  const made = Array.from({ length: count }, () => rig.attempted(FAILED, { status: 500 }, { projectId }));
  return (await Promise.all(made)).map(({ runId }) => runId);
}

describe('redelivery in bulk', () => {
  it('counts without doing anything', async () => {
    const rig = await openRig();
    const ids = await failMany(rig, 5);
    await failMany(rig, 2, 'p-else');
    const counted = await post(rig, { filter: { state: 'failed' }, dryRun: true });
    expect([counted.status, counted.json]).toEqual([200, { matching: 5, exact: true }]);
    expect(await rig.store.ledger.claimJob()).toBeUndefined();
    expect((await rig.store.find(ids[0]!))?.round).toBe(1);
  });

  it('gives all that it finds a new round, and tells how far it is', async () => {
    let told = 0;
    const rig = await openRig({}, { onJob: () => void (told += 1) });
    const ids = await failMany(rig, 7);
    const [foreign] = await failMany(rig, 1, 'p-else');
    await rig.attempted({ state: 'delivered' }, { status: 200 });
    const accepted = await post(rig, { filter: { state: 'failed', status: '5xx' } });
    expect([accepted.status, accepted.json]).toEqual([202, { job_id: expect.any(String), total: 7 }]);
    expect(told).toBe(1);
    const { job_id: id } = accepted.json as { job_id: string };
    expect(accepted.headers.get('location')).toBe(`${BULK}/${id}`);
    const path = `${BULK}/${id}`;
    expect((await rig.get(path)).json).toMatchObject({ job_id: id, state: 'running', total: 7, seen: 0 });
    const later = await failMany(rig, 1);

    const redeliveries = createRedeliveries({
      ledger: rig.store.ledger,
      clock: systemClock,
      log: silentLogger,
    });
    redeliveries.expect();
    await until(async () => ((await rig.get(path)).json as { state: string }).state === 'done');
    await redeliveries.stop();
    const done = { job_id: id, state: 'done', total: 7, seen: 7, redelivered: 7 };
    expect((await rig.get(path)).json).toMatchObject({ ...done, ended_at: expect.any(String) });
    for (const runId of ids)
      expect(await rig.store.find(runId)).toMatchObject({ state: 'pending', round: 2 });
    for (const runId of [foreign!, ...later]) expect(await rig.store.find(runId)).toMatchObject({ round: 1 });
  });

  it('under the same key is one job', async () => {
    const rig = await openRig();
    const key = { 'Idempotency-Key': 'nightly' };
    const first = await post(rig, { filter: { since: '24h' } }, key);
    const again = await post(rig, { filter: { since: '24h' } }, key);
    expect(again).toMatchObject({ status: 202, json: first.json });
    expect(await post(rig, { filter: { since: '12h' } }, key)).toMatchObject({ status: 422 });
  });

  it.each([
    [{}, 'filter'],
    [{ filter: {} }, 'filter must have at least one name'],
    [{ filter: { stat: 'failed' } }, 'there is no parameter "stat"'],
    [{ filter: { state: 'x' } }, 'filter.state must be one of'],
    [{ filter: { app: 'x' }, dryRun: 1 }, 'dryRun must be true or false'],
  ])('refuses %j', async (body, detail) => {
    const rig = await openRig();
    const { status, json } = await post(rig, body);
    expect([status, json]).toMatchObject([
      400,
      { code: 'invalid_body', detail: expect.stringContaining(detail) },
    ]);
  });
});

describe('counting', () => {
  it('ends after a while, and says that there are more', async () => {
    const clock = new ManualClock();
    const ledger: Pick<Ledger, 'runIds'> = {
      async runIds(_filter, { limit }) {
        clock.advance(1_000);
        return { runIds: Array.from({ length: limit }, () => 'x'), next: 'x' };
      },
    };
    const { signal } = new AbortController();
    expect(await countMatching({ ledger, clock, signal }, {})).toEqual({ matching: 5_000, exact: false });
  });
});

describe('the carrying out of a job', () => {
  const job = { id: 'j', ref: 'r', filter: { projectId: PROJECT }, createdAt: 0, state: 'running' } as const;
  const claimed = { ...job, total: 3, seen: 0, redelivered: 0 };

  /** A ledger with one job of three steps. */
  function ledgerOf(overrides: Partial<Ledger>) {
    const steps: (string | undefined)[] = [];
    const jobs = [claimed];
    const ledger = {
      claimJob: async () => jobs.shift(),
      pendingOf: async () => ({ pending: 0 }),
      async runIds(_filter, { before }) {
        const at = Number(before ?? 3);
        return at > 1 ? { runIds: [`${at}`], next: `${at - 1}` } : { runIds: [`${at}`] };
      },
      async stepJob(_ref, { runIds: [runId] }): Promise<Job | undefined> {
        steps.push(runId);
        return claimed;
      },
      ...overrides,
    } satisfies Partial<Ledger>;
    return { ledger, steps };
  }

  it('waits while much is pending, though not for ever', async () => {
    const clock = new ManualClock();
    let pending = 1_000;
    const { ledger, steps } = ledgerOf({ pendingOf: async () => ({ pending }) });
    const redeliveries = createRedeliveries({ ledger, clock, log: silentLogger });
    redeliveries.expect();
    await until(() => clock.waiting === 1);
    expect(steps).toEqual([]);
    pending = 999;
    clock.advance(250);
    await until(() => steps.length === 3);
    expect(steps).toEqual(['3', '2', '1']);
    await redeliveries.stop();

    const busy = ledgerOf({ pendingOf: async () => ({ pending: 1_000_000 }) });
    const patient = createRedeliveries({ ledger: busy.ledger, clock, log: silentLogger });
    patient.expect();
    await until(() => {
      clock.advance(250);
      return busy.steps.length > 0;
    });
    await patient.stop();
  });

  it('goes on where it was after a step that failed', async () => {
    const clock = new ManualClock();
    const { ledger, steps } = ledgerOf({});
    let fails = true;
    const flaky: typeof ledger = {
      ...ledger,
      async runIds(filter, page) {
        if (page.before === '2' && fails) throw new Error('no store');
        return ledger.runIds(filter, page);
      },
    };
    const redeliveries = createRedeliveries({ ledger: flaky, clock, log: silentLogger });
    redeliveries.expect();
    await until(() => clock.waiting === 1);
    expect(steps).toEqual(['3']);
    fails = false;
    clock.advance(2_000);
    await until(() => steps.length === 3);
    expect(steps).toEqual(['3', '2', '1']);
    await redeliveries.stop();
  });

  it('does not hold up a stop for long', async () => {
    const clock = new ManualClock();
    const begun = Promise.withResolvers<void>();
    const stepJob = (): Promise<undefined> => {
      begun.resolve();
      return new Promise(() => {});
    };
    const { ledger } = ledgerOf({ stepJob });
    const redeliveries = createRedeliveries({ ledger, clock, log: silentLogger });
    redeliveries.expect();
    await begun.promise;
    const stopping = redeliveries.stop();
    clock.advance(1_000);
    await stopping;
    expect(clock.waiting).toBe(0);
  });

  it('is left to whoever has taken it over', async () => {
    const { ledger, steps } = ledgerOf({});
    const lost = { ...ledger, stepJob: async () => void steps.push('lost') };
    const redeliveries = createRedeliveries({ ledger: lost, clock: new ManualClock(), log: silentLogger });
    redeliveries.expect();
    await until(() => steps.length > 0);
    await redeliveries.stop();
    expect(steps).toEqual(['lost']);
  });

  it('looks for jobs again and again, also after a failure, and not after its stop', async () => {
    const clock = new ManualClock();
    let looks = 0;
    const { ledger } = ledgerOf({
      claimJob: async () => {
        looks += 1;
        throw new Error('no store');
      },
    });
    const redeliveries = createRedeliveries({ ledger, clock, log: silentLogger });
    redeliveries.expect();
    await until(() => clock.waiting === 1);
    clock.advance(2_000);
    await until(() => looks === 2 && clock.waiting === 1);
    await redeliveries.stop();
    expect(clock.waiting).toBe(0);
    redeliveries.expect();
    expect(looks).toBe(2);
  });
});
