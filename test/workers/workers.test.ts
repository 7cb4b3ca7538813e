/**
 * Several workers on one machine with the embedded store, as real processes: together they do what one process
 * does, and the end of any of them costs nobody but its own callers.
 */
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { Agent, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { isAlive, untilEnded, untilNoneAlive } from '../support/alive.ts';
import { openApp } from '../support/app.ts';
import { openCollector } from '../support/collector.ts';
import { type Inbox, openInbox } from '../support/inbox.ts';
import { configure, openStoreOf, type Place, readMetric, serve, type Settings } from '../support/process.ts';
import { startReceiver } from '../support/receivers.ts';
import { serveWorkers, type WorkersRig } from '../support/workers.ts';

vi.setConfig({ testTimeout: 60_000 }); // three processes and more to start, some of them twice

const SOON = { timeout: 30_000, interval: 10 };
/** Connections: enough for an uneven number of them to be worth a change. */
const LANES = 60;
const HOSTED = join(import.meta.dirname, '..', 'runtime', 'hosted', 'main.ts');

interface Stage {
  readonly place: Place;
  /** Answers of `app/slow` that wait for their end. */
  readonly open: ServerResponse[];
}

/** `app/quick` is answered at once, `app/slow` when the test says so. */
async function prepare(more: Settings = {}, workers = 2): Promise<Stage> {
  const open: ServerResponse[] = [];
  const app = await openApp((req, res) => {
    if (req.url === '/slow') {
      res.write('half ');
      open.push(res);
    } else res.end('done');
  });
  onTestFinished(() => app.close());
  const apps = { app: { runtime: 'custom', url: app.url }, ...more.apps } as const;
  return { place: configure({ ...more, apps, more: { workers, ...more.more } }), open };
}

async function openTestInbox(answer?: Parameters<typeof openInbox>[0]): Promise<Inbox> {
  const inbox = await openInbox(answer);
  onTestFinished(() => inbox.close());
  return inbox;
}

const runIdOf = (answer: { header(name: string): string | undefined }): string =>
  answer.header('x-request-id')!;

/** Which worker took a call, by its line in the log. */
async function workerOf(rig: WorkersRig, runId: string): Promise<number | undefined> {
  const find = () => rig.lines().find(({ run_id, msg }) => run_id === runId && msg === 'call');
  await vi.waitUntil(() => find() !== undefined, SOON);
  return find()!.worker;
}

describe('two workers', () => {
  it('take calls at one listener, send their deliveries, and are counted as one', async () => {
    const { place } = await prepare();
    const inbox = await openTestInbox();
    const rig = await serveWorkers(place);
    const answers = [
      await rig.onlyOn(1, () => rig.call('app/quick', inbox.url)),
      await rig.onlyOn(2, () => rig.call('app/quick', inbox.url)),
      await rig.call('app/quick', inbox.url),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const answer of answers) await inbox.of(runIdOf(answer));
    expect(await workerOf(rig, runIdOf(answers[0]!))).toBe(1);
    expect(await workerOf(rig, runIdOf(answers[1]!))).toBe(2);
    const count = () =>
      readMetric(rig.addresses, 'calls_total{runtime="custom",status="2xx",webhook="yes",async="no"}');
    expect(await count()).toBe(3);
    expect(await readMetric(rig.addresses, 'store_available')).toBe(1);
    const session = await fetch(`${rig.addresses.admin}/session`);
    expect(await session.json()).toMatchObject({ login_required: false, logged_in: true });
    await vi.waitFor(async () => expect(await readMetric(rig.addresses, 'deliveries_held')).toBe(0), SOON);

    expect(await rig.service.stop()).toEqual({ code: 0, signal: null });
    const store = await openStoreOf(place);
    for (const answer of answers) {
      expect(await store.find(runIdOf(answer))).toMatchObject({ state: 'delivered' });
    }
  });

  it('refuse their own listeners as targets, the other of the two as well', async () => {
    const { place } = await prepare();
    const rig = await serveWorkers(place);
    for (const port of [rig.addresses.port, rig.addresses.adminPort]) {
      const answer = await rig.call('app/quick', `http://127.0.0.1:${port}/`);
      expect([port, answer.status]).toEqual([port, 400]);
    }
  });

  it('hold the concurrency of a hosted app together', async () => {
    const folder = temporaryDirectory();
    const { place } = await prepare({
      apps: { fn: { runtime: 'cortex', entry: HOSTED, concurrency: 2 } },
    });
    const rig = await serveWorkers(place);
    const begin = (name: string) => rig.begin('fn/hold', undefined, { folder, name });
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const half = (on: number, those: string[]) =>
      rig.onlyOn(on, async () => {
        const begun = await Promise.all(those.map(begin));
        await rig.call('app/quick'); // connections are accepted in their order: by then it has the others
        return begun;
      });
    const calls = [...(await half(1, names.slice(0, 3))), ...(await half(2, names.slice(3)))];
    const begun = (): string[] => readdirSync(folder).filter(name => names.includes(name));
    for (let ended = 0; ended < names.length; ended += 1) {
      const running = Math.min(ended + 2, names.length);
      await vi.waitUntil(() => begun().length === running, SOON);
      const next = begun().find(name => !existsSync(join(folder, `${name}.go`)))!;
      writeFileSync(join(folder, `${next}.go`), '');
    }
    for (const call of calls) await call.until('"status_code":200');
    const workers = await Promise.all(
      calls.map(({ text }) => workerOf(rig, /x-request-id: (\S+)/i.exec(text)![1]!)),
    );
    expect(new Set(workers)).toEqual(new Set([1, 2]));
  });

  it('share the callers that have all come to one of them, without failing a call', async () => {
    const { place } = await prepare();
    const rig = await serveWorkers(place);
    const agent = new Agent({ keepAlive: true, maxSockets: LANES });
    onTestFinished(() => agent.destroy());
    const lanes = Array.from({ length: LANES }, (_, lane) => lane);
    const statuses = new Set<number | string>();
    const call = async (): Promise<void> => {
      const status = await rig.callWith(agent, 'app/quick').catch(String);
      statuses.add(status);
    };
    await rig.onlyOn(1, () => Promise.all(lanes.map(call)));

    const workers = (): (number | undefined)[] =>
      rig
        .lines()
        .filter(({ msg }) => msg === 'call')
        .slice(-100)
        .map(({ worker }) => worker);
    await vi.waitFor(async () => {
      await Promise.all(lanes.map(call));
      expect(workers().filter(worker => worker === 2).length).toBeGreaterThan(20);
    }, SOON);
    expect(statuses).toEqual(new Set([200]));
  });

  it('do not start where the port is taken, and say so', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const { place } = await prepare({ more: { listen: `127.0.0.1:${port}` } });
    const service = serve(place, { MARK: 'port' });
    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toContain(`cannot listen on 127.0.0.1:${port}: the port is taken`);
  });
});

describe('a worker that is killed', () => {
  it('is replaced, and what it was sending is sent by another', async () => {
    const { place, open } = await prepare();
    const inbox = await openTestInbox();
    const rig = await serveWorkers(place);
    const dead = rig.pidOf(1);
    const bystander = await rig.onlyOn(2, async () => {
      const caller = await rig.begin('app/slow');
      await vi.waitUntil(() => open.length === 1, SOON);
      return caller;
    });
    const hanging = await openApp(() => {});
    onTestFinished(() => hanging.close());
    const held = await rig.onlyOn(1, () => rig.call('app/quick', `${hanging.url}/held`));
    await vi.waitFor(async () => expect(await readMetric(rig.addresses, 'attempts_in_flight')).toBe(1), SOON);

    process.kill(dead, 'SIGKILL');
    await untilEnded(dead);
    const meanwhile = await rig.call('app/quick', inbox.url);
    expect(meanwhile.status).toBe(200);
    await inbox.of(runIdOf(meanwhile));
    await vi.waitFor(async () => expect(await readMetric(rig.addresses, 'attempts_in_flight')).toBe(1), SOON);
    open[0]!.end('and half');
    await bystander.until('and half');
    expect(isAlive(await rig.successorOf(dead, 1))).toBe(true);
    expect((await fetch(`${rig.addresses.admin}/readyz`)).status).toBe(200);
    const calls = await readMetric(
      rig.addresses,
      'calls_total{runtime="custom",status="2xx",webhook="yes",async="no"}',
    );
    expect(calls).toBeGreaterThanOrEqual(1); // those of the dead count as far as they were known

    await rig.service.kill();
    const store = await openStoreOf(place);
    expect(await store.find(runIdOf(held))).toMatchObject({
      state: 'pending',
      attempts: [{ number: 1, error: 'interrupted' }],
    });
  });

  it('leaves a trace in which another goes on', async () => {
    const { place } = await prepare();
    await using collector = await openCollector();
    let answers = false;
    await using receiver = await startReceiver((_request, response) => void (answers && response.end()));
    const rig = await serveWorkers(place, {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    });
    const dead = rig.pidOf(1);
    const runId = runIdOf(await rig.onlyOn(1, () => rig.call('app/quick', receiver.url)));
    await vi.waitUntil(() => receiver.requests.length === 1, SOON);
    const [call] = await collector.ofRun(runId, 1);
    answers = true;
    process.kill(dead, 'SIGKILL');
    await vi.waitUntil(() => receiver.requests.length === 2, SOON);
    const attempt = (await collector.ofRun(runId, 2)).at(-1)!;
    expect(call!.kind).toBe('server');
    expect(attempt).toMatchObject({
      kind: 'client',
      traceId: call!.traceId,
      links: [{ traceId: call!.traceId, spanId: call!.spanId }],
      attributes: { 'afterword.attempt': 2, 'http.response.status_code': 200 },
    });
    const { traceId, spanId } = attempt;
    expect(receiver.requests[1]!.headers['traceparent']).toBe(`00-${traceId}-${spanId}-01`);
  });

  it('frees the places that its calls had in a hosted app', async () => {
    const folder = temporaryDirectory();
    const { place } = await prepare({
      apps: { fn: { runtime: 'cortex', entry: HOSTED, concurrency: 1 } },
    });
    const rig = await serveWorkers(place);
    const dead = rig.pidOf(1);
    await rig.onlyOn(1, async () => {
      await rig.begin('fn/hold', undefined, { folder, name: 'lost' });
      await vi.waitUntil(() => existsSync(join(folder, 'lost')), SOON);
    });
    process.kill(dead, 'SIGKILL');
    await untilEnded(dead); // or it might still take the call
    expect((await rig.call('fn/pid')).status).toBe(200);
  });
});

describe('a primary that is killed', () => {
  it('takes all with it, and what was acknowledged is delivered after the next start', async () => {
    const { place } = await prepare({ apps: { fn: { runtime: 'cortex', entry: HOSTED } } });
    let life = 1;
    await using receiver = await startReceiver((_request, response) => {
      if (life > 1) response.end();
    });
    const rig = await serveWorkers(place);
    expect((await rig.call('fn/pid')).status).toBe(200);
    const answers = await Promise.all([1, 2, 3, 4].map(() => rig.call('app/quick', receiver.url)));
    await vi.waitUntil(() => receiver.requests.length === 4, SOON);
    await rig.service.kill();
    await untilNoneAlive(rig.mark);

    life = 2;
    const next = await serveWorkers(place);
    await vi.waitUntil(() => receiver.requests.length === 8, SOON);
    expect(await next.service.stop()).toEqual({ code: 0, signal: null });
    const store = await openStoreOf(place);
    for (const answer of answers) {
      expect(await store.find(runIdOf(answer))).toMatchObject({
        state: 'delivered',
        attempts: [{ error: 'interrupted' }, { status: 200 }],
      });
    }
  });
});

/** Reads how many calls were answered, again and again, and once more at the end. */
function count({ addresses }: Pick<WorkersRig, 'addresses'>) {
  const name = 'calls_total{runtime="custom",status="2xx",webhook="no",async="no"}';
  const counts: number[] = [];
  const ending = new AbortController();
  const reading = (async () => {
    while (!ending.signal.aborted) counts.push(await readMetric(addresses, name));
    counts.push(await readMetric(addresses, name));
  })();
  return {
    async end(): Promise<readonly number[]> {
      ending.abort();
      await reading;
      return counts;
    },
  };
}

describe('SIGHUP', () => {
  it('replaces the workers without a caller noticing', async () => {
    const { place, open } = await prepare();
    const inbox = await openTestInbox();
    const rig = await serveWorkers(place);
    const before = [rig.pidOf(1), rig.pidOf(2)] as const;
    const kept = await rig.onlyOn(1, async () => {
      const caller = await rig.begin('app/quick');
      await caller.until('done');
      return caller;
    });
    const slow = await rig.onlyOn(2, async () => {
      const caller = await rig.begin('app/slow', inbox.url);
      await vi.waitUntil(() => open.length === 1, SOON);
      return caller;
    });

    const counting = count(rig);
    rig.service.signal('SIGHUP');
    await rig.successorOf(before[0], 1);
    // A new one says that it serves before the old one is asked to go; until then, answers are as ever.
    let [calls, length] = [1, 0];
    do {
      length = kept.text.length;
      kept.send(rig.head('app/quick'));
      await kept.until('done', length);
      calls += 1;
    } while (!/connection: close/i.test(kept.text.slice(length)));
    expect((await kept.end()).slice(length)).toMatch(/^HTTP\/1.1 200 .*connection: close.*done/is);
    await rig.successorOf(before[1], 2);
    open[0]!.end('and half');
    await slow.until('and half');
    await inbox.of(/x-request-id: (\S+)/i.exec(slow.text)![1]!);
    slow.close();
    for (const pid of before) await untilEnded(pid);
    expect((await rig.call('app/quick')).status).toBe(200);
    const counts = await counting.end();
    expect(counts).toEqual(counts.toSorted((one, other) => one - other));
    expect(counts.at(-1)).toBe(calls + 1);
    expect(await rig.service.stop()).toEqual({ code: 0, signal: null });
    await untilNoneAlive(rig.mark);
  });
});

describe('SIGTERM', () => {
  it('lets a call under way end and its delivery be kept, then ends all', async () => {
    const { place, open } = await prepare();
    const inbox = await openTestInbox();
    const rig = await serveWorkers(place);
    const slow = await rig.begin('app/slow', inbox.url);
    await vi.waitUntil(() => open.length === 1, SOON);
    rig.service.signal('SIGTERM');
    await vi.waitFor(async () => {
      const readiness = await fetch(`${rig.addresses.admin}/readyz`);
      expect(await readiness.text()).toBe('stopping\n');
    }, SOON);
    open[0]!.end('and half');
    await slow.until('and half');
    expect(await rig.service.ended).toEqual({ code: 0, signal: null });
    await untilNoneAlive(rig.mark);
    const store = await openStoreOf(place);
    expect(await store.find(/x-request-id: (\S+)/i.exec(slow.text)![1]!)).toMatchObject({ statusCode: 200 });
  });

  it('for the second time ends all at once', async () => {
    const { place, open } = await prepare();
    const rig = await serveWorkers(place);
    const slow = await rig.begin('app/slow');
    await vi.waitUntil(() => open.length === 1, SOON);
    const saying = setInterval(() => rig.service.signal('SIGTERM'), 60);
    expect(await rig.service.ended).toEqual({ code: 143, signal: null });
    clearInterval(saying);
    await untilNoneAlive(rig.mark);
    await slow.end();
  });
});
