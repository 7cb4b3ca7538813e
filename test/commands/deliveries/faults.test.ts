/**
 * The commands of deliveries, and a service that a test lets answer as it likes: pages without anything in them,
 * streams that end, refusals, bodies that are gone.
 */
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openInbox } from '../../support/inbox.ts';
import { until } from '../../support/waiting.ts';
import { type Running, run, start } from '../run.ts';
import { objectsIn, UNKNOWN } from './delivering.ts';

const NOW = new Date().toISOString();
const delivery = (facts: object = {}) => ({
  run_id: UNKNOWN,
  app: 'web',
  target: 'http://a.example/',
  state: 'pending',
  round: 1,
  attempt_count: 0,
  created_at: NOW,
  ...facts,
});

/** The options that lead there, and what was asked. */
async function serve(answer: RequestListener) {
  const asked: string[] = [];
  const server = createServer((req, res) => {
    asked.push(req.url!);
    answer(req, res);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => server.close().closeAllConnections());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, there: ['--url', url, '-p', 'p', '--token', 't'] };
}

const json = (res: ServerResponse, value: object): void => void res.end(JSON.stringify(value));

function problem(res: ServerResponse, status: number): void {
  const headers = { 'Content-Type': 'application/problem+json', 'X-Request-Id': UNKNOWN };
  const body = { status, detail: 'told why', code: 'unauthorized', run_id: UNKNOWN };
  res.writeHead(status, headers).end(JSON.stringify(body));
}

function stream(res: ServerResponse, ...deliveries: readonly object[]): void {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': hello\n\n');
  for (const each of deliveries) res.write(`event: delivery\ndata: ${JSON.stringify(each)}\n\n`);
}

function tail(argv: readonly string[]): Running {
  const running = start(['deliveries', 'tail', ...argv]);
  onTestFinished(async () => {
    running.stop();
    await running.exit;
  });
  return running;
}

describe('a list', () => {
  it('goes on behind pages without anything in them', async () => {
    const pages = [
      { deliveries: [], next_cursor: 'b' },
      { deliveries: [delivery()], next_cursor: 'c' },
      { deliveries: [], next_cursor: null },
    ];
    const { asked, there } = await serve((_, res) => json(res, pages.shift()!));
    const { code, stdout } = await run(['deliveries', 'list', '--status', '5xx', ...there]);
    expect(code).toBe(0);
    expect(objectsIn(stdout)).toEqual([delivery()]);
    expect(asked).toEqual([
      '/v4/p/_deliveries?status=5xx&limit=50',
      '/v4/p/_deliveries?status=5xx&cursor=b&limit=50',
      '/v4/p/_deliveries?status=5xx&cursor=c&limit=49',
    ]);
  });

  it.each<[string, RequestListener, string]>([
    [
      'is none',
      (_, res) => void res.end('<h1>Welcome</h1>'),
      'tells nothing of deliveries: is this the service?',
    ],
    [
      'breaks off',
      (_, res) => void res.writeHead(200, { 'Content-Length': 9 }).write('{', () => res.destroy()),
      'broke off',
    ],
    ['is refused', (_, res) => problem(res, 401), `told why (unauthorized, run ${UNKNOWN})`],
  ])('that %s fails', async (_, answer, message) => {
    const { there } = await serve(answer);
    const { code, stderr } = await run(['deliveries', 'list', ...there]);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });
});

describe('a stream', () => {
  it('that ends is opened again, and what has changed meanwhile is read from the list', async () => {
    const old = delivery({
      state: 'failed',
      created_at: '2001-01-01T00:00:00.000Z',
      settled_at: '2001-01-01T00:00:01.000Z',
    });
    const settledAt = new Date().toISOString();
    const late = delivery({ run_id: UNKNOWN.replace('0', '1'), state: 'delivered', settled_at: settledAt });
    let streams = 0;
    const { asked, there } = await serve((req, res) => {
      if (!req.url!.includes('/stream'))
        return json(res, { deliveries: [late, delivery(), old], next_cursor: null });
      stream(res, delivery());
      streams += 1;
      if (streams === 1) res.end();
    });
    const running = tail(['--app', 'web', ...there]);
    await until(() => running.stdout.lines.length === 2);
    // What was told before is not told again, and what is old is not told.
    expect(objectsIn(running.stdout.text)).toEqual([delivery(), late]);
    expect(running.stderr.text).toBe('the stream has broken off, connecting again\nconnected again\n');
    expect(asked).toEqual([
      '/v4/p/_deliveries/stream?app=web',
      '/v4/p/_deliveries/stream?app=web',
      '/v4/p/_deliveries?app=web&limit=200',
    ]);
  });

  it('is waited for while the service is away, and given up where it refuses', async () => {
    let streams = 0;
    const { there } = await serve((_, res) => {
      streams += 1;
      if (streams > 1) return problem(res, streams === 2 ? 503 : 401);
      stream(res);
      res.end();
    });
    const { exit, stderr } = tail(there);
    expect(await exit).toBe(1);
    expect(streams).toBe(3);
    expect(stderr.lines).toEqual([
      'the stream has broken off, connecting again',
      `error: told why (unauthorized, run ${UNKNOWN})`,
    ]);
  });

  it.each<[string, RequestListener]>([
    ['cannot answer', (_, res) => problem(res, 503)],
    ['is none', (_, res) => json(res, {})],
  ])('fails where the service %s at first', async (_, answer) => {
    const { there } = await serve(answer);
    expect(await run(['deliveries', 'tail', ...there])).toMatchObject({ code: 1, stdout: '' });
  });

  it('looks back so far and no further', async () => {
    let streams = 0;
    const { asked, there } = await serve((req, res) => {
      if (!req.url!.includes('/stream')) return json(res, { deliveries: [delivery()], next_cursor: 'more' });
      streams += 1;
      stream(res);
      if (streams === 1) res.end();
    });
    const { stderr } = tail(there);
    await stderr.match(/^changes meanwhile of what is older than .*Z are not told\nconnected again\n$/m);
    expect(asked).toHaveLength(2 + 25);
  });
});

it.each<[string, RequestListener, object]>([
  [
    'is gone',
    (_, res) => json(res, { ...delivery(), request: { headers: {}, body: null } }),
    { code: 'body_missing' },
  ],
  [
    'is not given',
    (_, res) => problem(res, 404),
    { code: 'not_read', meaning: expect.stringContaining('told why') },
  ],
])('a body that %s is told, and not forwarded', async (_, answer, error) => {
  const local = await openInbox();
  onTestFinished(() => local.close());
  const { there } = await serve((req, res) =>
    req.url!.includes('/stream') ? stream(res, delivery()) : answer(req, res),
  );
  const running = tail(['--forward-to', local.url, '--secret', 's', ...there]);
  await until(() => running.stdout.lines.length === 2);
  expect(objectsIn(running.stdout.text)[1]).toMatchObject({ run_id: UNKNOWN, round: 1, error });
  expect(local.received).toEqual([]);
});
