/**
 * Apps that run here and misbehave: their processes are killed in the midst of calls, or take all the
 * processor that there is. The service goes on, tells everybody what happened, and leaves nothing behind.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { aliveWith, untilNoneAlive } from '../support/alive.ts';
import { openApp } from '../support/app.ts';
import { callRaw, type RawAnswer } from '../support/caller.ts';
import { converse, type Conversation } from '../support/conversation.ts';
import { type Inbox, openInbox } from '../support/inbox.ts';
import { type Addresses, configure, serve, type ServiceProcess, type Settings } from '../support/process.ts';
import { PROJECT, testToken } from '../support/service.ts';

const LONG = process.env['AFTERWORD_FAULTS'] === 'long';
/** Kills in all. A process that is killed often is started again ever later: so there are several. */
const [APPS, KILLS_OF_EACH] = LONG ? [10, 10] : [5, 3];
const SOON = { timeout: 30_000, interval: 5 };

const FUNCTIONS = join(import.meta.dirname, '..', 'runtime', 'hosted');
const entry = (file: 'main.ts' | 'main.py', more = {}) =>
  ({ runtime: 'cortex', entry: join(FUNCTIONS, file), ...more }) as const;

const CRASHED = { type: 'app_crashed', message: 'The process of the app ended during the call' };

interface Rig {
  readonly service: ServiceProcess;
  readonly addresses: Addresses;
  /** In the environment of the service and of everything that it has started. */
  readonly mark: string;
  readonly call: (path: string, parameters?: object, target?: string) => Promise<RawAnswer>;
  /** A call whose answer is not waited for. */
  readonly begin: (path: string, parameters: object, target: string) => Promise<Conversation>;
}

async function open(apps: NonNullable<Settings['apps']>): Promise<Rig> {
  const MARK = randomUUID();
  const service = serve(configure({ apps }), {
    MARK,
    PYTHONDONTWRITEBYTECODE: '1',
  });
  const addresses = await service.ready;
  const { port } = addresses;
  const auth = `Authorization: Bearer ${await testToken()}`;
  const pathOf = (path: string, target?: string): string =>
    `/v4/${PROJECT}/${path}${target === undefined ? '' : `?webhookEndpoint=${encodeURIComponent(target)}`}`;
  return {
    service,
    addresses,
    mark: `MARK=${MARK}`,
    call: (path, parameters = {}, target?) =>
      callRaw({
        port,
        method: 'POST',
        path: pathOf(path, target),
        headers: [auth],
        body: JSON.stringify(parameters),
      }),
    async begin(path, parameters, target) {
      const conversation = await converse(port);
      const body = JSON.stringify(parameters);
      const head = `POST ${pathOf(path, target)} HTTP/1.1\r\nHost: test\r\n${auth}`;
      conversation.send(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      return conversation;
    },
  };
}

const jsonOf = (bytes: Buffer): unknown => JSON.parse(bytes.toString());

async function openTestInbox(): Promise<Inbox> {
  const inbox = await openInbox();
  onTestFinished(() => inbox.close());
  return inbox;
}

/** One call that waits, with a webhook and without, and one that streams; then no process. */
async function killOnce({ call, begin }: Rig, app: string, inbox: Inbox): Promise<void> {
  const folder = temporaryDirectory();
  const names = ['with', 'without'];
  const waiting = names.map(name =>
    call(`${app}/hold`, { folder, name }, name === 'with' ? inbox.url : undefined),
  );
  const streaming = await begin(`${app}/beat`, { folder, name: 'stream' }, inbox.url);
  await streaming.until('data: ');
  await vi.waitUntil(
    () =>
      names.every(name => existsSync(join(folder, name)) && readFileSync(join(folder, name), 'utf8') !== ''),
    SOON,
  );
  const pid = Number(readFileSync(join(folder, 'with'), 'utf8'));
  process.kill(pid, 'SIGKILL');

  for (const answer of await Promise.all(waiting)) {
    expect([answer.status, answer.header('content-type')]).toEqual([502, 'application/problem+json']);
    expect(jsonOf(answer.body)).toMatchObject({ code: 'app_crashed', error: CRASHED });
  }
  const delivery = await inbox.of((await waiting[0]!).header('x-request-id')!);
  expect(jsonOf(delivery.body)).toMatchObject({ status_code: 502, error: CRASHED });
  const text = await streaming.end();
  expect(text.endsWith('0\r\n\r\n')).toBe(false);
  const streamed = await inbox.of(/x-request-id: (\S+)/i.exec(text)![1]!);
  expect(jsonOf(streamed.body)).toMatchObject({ status_code: 200, error: CRASHED });

  const next = await call(`${app}/pid`, {}, inbox.url);
  expect(next.status).toBe(200);
  expect((jsonOf(next.body) as { result: number }).result).not.toBe(pid);
  expect((await inbox.of(next.header('x-request-id')!)).body.equals(next.body)).toBe(true);
}

describe('processes that are killed in the midst of calls', () => {
  it(`${APPS * KILLS_OF_EACH} times: everybody is told, the next call works, nobody else notices`, async () => {
    const names = Array.from({ length: APPS }, (_, index) => `app${index}`);
    const hosted = names.map(
      (name, index) => [name, entry(index % 2 === 0 ? 'main.ts' : 'main.py')] as const,
    );
    const elsewhere = await openApp((_req, res) => res.end('fine'));
    onTestFinished(() => elsewhere.close());
    const inbox = await openTestInbox();
    const rig = await open({
      ...Object.fromEntries(hosted),
      elsewhere: { runtime: 'custom', url: elsewhere.url },
    });

    const load = { over: false };
    const statuses = new Set<number>();
    const bystander = (async () => {
      while (!load.over) statuses.add((await rig.call('elsewhere/', {}, inbox.url)).status);
    })();
    await Promise.all(
      names.map(async name => {
        for (let kill = 0; kill < KILLS_OF_EACH; kill += 1) await killOnce(rig, name, inbox);
      }),
    );
    load.over = true;
    await bystander;
    expect(statuses).toEqual(new Set([200]));
    expect((await fetch(`${rig.addresses.admin}/readyz`)).status).toBe(200);
    expect(await rig.service.stop()).toEqual({ code: 0, signal: null });
    await untilNoneAlive(rig.mark);
  });
});

describe('a service that is killed', () => {
  it('leaves no process behind, however busy they are and whatever they have started', async () => {
    const folder = temporaryDirectory();
    const server = join(FUNCTIONS, 'server.ts');
    const rig = await open({
      ts: entry('main.ts', { replicas: 2 }),
      py: entry('main.py'),
      web: { runtime: 'custom', command: [process.execPath, server], env: { STUBBORN: '1' } },
    });
    for (const app of ['ts', 'py']) expect((await rig.call(`${app}/leave`)).status).toBe(200);
    expect((await rig.call('web/pid')).status).toBe(200);
    for (const app of ['ts', 'py']) {
      rig.call(`${app}/hold`, { folder, name: app }).catch(() => {}); // cut off
      await vi.waitUntil(() => existsSync(join(folder, app)), SOON);
      rig.call(`${app}/burn`, { ms: 60_000 }).catch(() => {});
    }
    // Each of four processes has a shell and a guard; there are two that were left, and the service.
    await vi.waitUntil(() => aliveWith(rig.mark).length >= 4 * 3 + 2 + 1, SOON);

    expect(await rig.service.kill()).toEqual({ code: null, signal: 'SIGKILL' });
    await untilNoneAlive(rig.mark);
  });
});

describe('a function that takes a whole processor', () => {
  const ROUNDS = LONG ? 10 : 3;
  const CALLS = 200;
  const BURN_MS = 300;

  it('does not slow down the calls of others', async () => {
    const elsewhere = await openApp((_req, res) => res.end('fine'));
    onTestFinished(() => elsewhere.close());
    const rig = await open({
      elsewhere: { runtime: 'custom', url: elsewhere.url },
      burner: entry('main.ts'),
    });
    expect((await rig.call('burner/burn', { ms: 1 })).status).toBe(200);

    const measure = async (): Promise<number[]> => {
      const times: number[] = [];
      for (let call = 0; call < CALLS; call += 1) {
        const began = performance.now();
        expect((await rig.call('elsewhere/')).status).toBe(200);
        times.push(performance.now() - began);
      }
      return times;
    };
    const measureBurning = async (): Promise<number[]> => {
      const load = { over: false, burns: 0 };
      const burning = (async () => {
        while (!load.over) {
          expect((await rig.call('burner/burn', { ms: BURN_MS })).status).toBe(200);
          load.burns += 1;
        }
      })();
      const times: number[] = [];
      // Until at least one has burnt from its beginning to its end.
      while (load.burns < 2) times.push(...(await measure()));
      load.over = true;
      await burning;
      return times;
    };

    const quiet = await measure();
    const burning: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      burning.push(...(await measureBurning()));
      quiet.push(...(await measure()));
    }
    // The whole of it is shown when one of them fails.
    const ratios = { median: ratio(burning, quiet, 0.5), p99: ratio(burning, quiet, 0.99) };
    expect(ratios).toSatisfy(({ median, p99 }: typeof ratios) => median < 5 && p99 < 20);
    expect(await rig.service.stop()).toEqual({ code: 0, signal: null });
    await untilNoneAlive(rig.mark);
  });
});

function ratio(values: readonly number[], others: readonly number[], share: number): number {
  return part(values, share) / part(others, share);
}

/** The value below which this part of all lies. */
function part(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
