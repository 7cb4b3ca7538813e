/**
 * How the service ends: asked to, it lets what is under way come to its end; told again, or killed, it loses
 * nothing that it has acknowledged.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openApp } from '../support/app.ts';
import { callRaw, dial, type RawAnswer, readAll } from '../support/caller.ts';
import { openInbox } from '../support/inbox.ts';
import {
  type Addresses,
  configure,
  openStoreOf,
  type Place,
  serve,
  type ServiceProcess,
} from '../support/process.ts';
import { PROJECT, testToken } from '../support/service.ts';
import { startReceiver } from '../support/receivers.ts';

const SOON = { timeout: 10_000, interval: 20 };

interface Rig {
  readonly place: Place;
  /** Answers of the app that wait for their second half. */
  readonly open: ServerResponse[];
}

/** `quick` is answered at once; `slow` gets half an answer, and the rest when the test says so. */
async function prepare(webhooks: Record<string, unknown> = {}): Promise<Rig> {
  const open: ServerResponse[] = [];
  const app = await openApp((req, res) => {
    if (req.url === '/quick') {
      res.end('done');
      return;
    }
    res.write('half ');
    open.push(res);
  });
  onTestFinished(() => app.close());
  return { place: configure({ apps: { app: { runtime: 'custom', url: app.url } }, webhooks }), open };
}

async function call({ port }: Addresses, path: string, target: string): Promise<RawAnswer> {
  return callRaw({
    port,
    path: `/v4/${PROJECT}/app/${path}?webhookEndpoint=${encodeURIComponent(target)}`,
    headers: [`Authorization: Bearer ${await testToken()}`],
  });
}

async function startSlowCall(
  rig: Rig,
  addresses: Addresses,
  target: string,
): Promise<{ calling: Promise<RawAnswer> }> {
  const calling = call(addresses, 'slow', target);
  calling.catch(() => {}); // some tests cut it off
  await vi.waitUntil(() => rig.open.length > 0, SOON);
  return { calling };
}

async function untilRefused({ port }: Addresses): Promise<void> {
  const isRefused = (): Promise<boolean> =>
    new Promise(resolve => {
      const socket = connect(port, '127.0.0.1');
      socket.on('connect', () => {
        socket.destroy();
        resolve(false);
      });
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
    });
  await vi.waitUntil(isRefused, SOON);
}

const runIdOf = (answer: RawAnswer): string => answer.header('x-request-id')!;

describe('SIGTERM', () => {
  it('lets a call under way end, takes no new one, and the delivery is kept', async () => {
    const rig = await prepare();
    const inbox = await openInbox();
    onTestFinished(() => inbox.close());
    const service = serve(rig.place);
    const addresses = await service.ready;
    const idle = await dial(addresses.port);
    idle.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
    await once(idle, 'data');
    const { calling } = await startSlowCall(rig, addresses, inbox.url);

    service.signal('SIGTERM');
    await untilRefused(addresses);
    await readAll(idle);
    const readiness = await fetch(`${addresses.admin}/readyz`);
    expect([readiness.status, await readiness.text()]).toEqual([503, 'stopping\n']);
    rig.open[0]!.end('and half');
    const answer = await calling;
    expect([answer.status, answer.body.toString()]).toEqual([200, 'half and half']);
    expect(await service.ended).toEqual({ code: 0, signal: null });

    const next = serve(rig.place);
    await next.ready;
    expect((await inbox.of(runIdOf(answer))).body.toString()).toContain('"result":"half and half"');
    expect(await next.stop()).toEqual({ code: 0, signal: null });
  });

  it('lets an attempt in flight end, so that it is not repeated', async () => {
    const { place } = await prepare();
    const waiting: ServerResponse[] = [];
    await using receiver = await startReceiver((_, response) => waiting.push(response));
    const service = serve(place);
    const addresses = await service.ready;
    const answer = await call(addresses, 'quick', receiver.url);
    await vi.waitUntil(() => waiting.length === 1, SOON);

    service.signal('SIGTERM');
    await untilRefused(addresses);
    waiting[0]!.end();
    expect(await service.ended).toEqual({ code: 0, signal: null });
    const store = await openStoreOf(place);
    expect(await store.find(runIdOf(answer))).toMatchObject({
      state: 'delivered',
      attempts: [{ number: 1 }],
    });
  });
});

describe.each([
  ['a second SIGTERM', signalAgain, { code: 143, signal: null }],
  [
    'SIGKILL while it drains',
    async (service: ServiceProcess) => service.signal('SIGKILL'),
    { code: null, signal: 'SIGKILL' },
  ],
] as const)('%s', (_, end, ending) => {
  it('ends it at once, and what was acknowledged is delivered after the next start', async () => {
    const rig = await prepare();
    let life = 1;
    await using receiver = await startReceiver((_request, response) => {
      if (life > 1) response.end();
    });
    const service = serve(rig.place);
    const addresses = await service.ready;
    const answers = await Promise.all([1, 2, 3].map(() => call(addresses, 'quick', receiver.url)));
    await vi.waitUntil(() => receiver.requests.length === 3, SOON);
    const { calling } = await startSlowCall(rig, addresses, receiver.url);

    service.signal('SIGTERM');
    await untilRefused(addresses);
    await end(service);
    expect(await service.ended).toEqual(ending);
    await expect(calling).rejects.toThrow('cut off');

    life = 2;
    const next = serve(rig.place);
    await vi.waitUntil(() => receiver.requests.length === 6, SOON);
    await next.ready;
    await next.stop();
    const store = await openStoreOf(rig.place);
    for (const answer of answers) {
      expect(await store.find(runIdOf(answer))).toMatchObject({
        state: 'delivered',
        attempts: [
          { number: 1, error: 'interrupted' },
          { number: 2, status: 200 },
        ],
      });
    }
    expect((await store.backlog()).pending).toEqual(new Map());
  });
});

/** What comes right after the first is taken for the same wish, so it is said until it is heard. */
async function signalAgain(service: ServiceProcess): Promise<void> {
  const saying = setInterval(() => service.signal('SIGTERM'), 50);
  await service.ended;
  clearInterval(saying);
}
