/**
 * Hosted apps through the whole service: what their processes get, how busy and broken ones are answered
 * for, and that nothing of them is left.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { aliveWith, untilEnded, untilNoneAlive } from '../support/alive.ts';
import { callRaw, type RawAnswer } from '../support/caller.ts';
import { converse } from '../support/conversation.ts';
import { openInbox } from '../support/inbox.ts';
import { captureLog } from '../support/log.ts';
import { configure, serve } from '../support/process.ts';
import { closedPort } from '../support/receivers.ts';
import {
  APP_ENVIRONMENT,
  PROJECT,
  startService,
  type TestProcess,
  type TestService,
  type TestServiceOptions,
  testToken,
} from '../support/service.ts';
import { HOSTED, NODE, SERVER, shell } from './hosting.ts';

const SOON = { timeout: 10_000, interval: 5 };

interface Rig extends TestService {
  readonly mark: string;
  readonly call: (path: string, parameters?: object, target?: string) => Promise<RawAnswer>;
  /** The result of a call of a function, or the answer of a server. */
  readonly ask: (path: string, parameters?: object) => Promise<unknown>;
}

/** A service with one hosted app, called `app`. */
async function open(given: TestProcess, more: Omit<TestServiceOptions, 'apps'> = {}): Promise<Rig> {
  const MARK = randomUUID();
  const runtime = given.program.kind === 'command' ? 'custom' : 'cortex';
  const app = { runtime, process: { ...given, env: { MARK, ...given.env } } } as const;
  const service = await startService({ apps: { app }, ...more });
  onTestFinished(() => service.stop());
  const headers = [`Authorization: Bearer ${service.token}`];
  const call: Rig['call'] = (path, parameters = {}, target?) =>
    callRaw({
      port: service.port,
      method: 'POST',
      path: service.path(`app/${path}`, target),
      headers,
      body: JSON.stringify(parameters),
    });
  return {
    ...service,
    mark: `MARK=${MARK}`,
    call,
    async ask(path, parameters) {
      const { status, body } = await call(path, parameters);
      expect([status, body.toString()]).toEqual([200, expect.any(String)]);
      const answer = JSON.parse(body.toString()) as { result: unknown };
      return runtime === 'cortex' ? answer.result : answer;
    },
  };
}

const PYTHON = { kind: 'python', entry: join(HOSTED, 'main.py'), python: 'python3' } as const;
const CUSTOM = { kind: 'command', command: SERVER } as const;

const appears = (file: string) => vi.waitUntil(() => existsSync(file), SOON);

describe.each([
  ['TypeScript', NODE, ['AFTERWORD_ENTRY', 'AFTERWORD_SOCKET']],
  ['Python', PYTHON, ['AFTERWORD_ENTRY', 'AFTERWORD_SOCKET']],
  ['a command', CUSTOM, ['PORT']],
])('the process of %s', (_, program, added) => {
  it('gets what is passed on, what it is given, and where to listen; and nothing else', async () => {
    const { ask, mark } = await open({
      program,
      env: { MINE: 'ours', PATH: `${APP_ENVIRONMENT.PATH}:/mine` },
    });
    const env = (await ask('env')) as Record<string, string>;
    expect(env).toMatchObject({ MINE: 'ours', MARK: mark.slice('MARK='.length) });
    expect(env['PATH']).toMatch(/:\/mine$/);
    // What shells and launchers add by themselves.
    const own = /^(PWD|OLDPWD|SHLVL|_|LC_CTYPE|_?PYENV_.*)$/;
    const names = Object.keys(env).filter(name => !own.test(name));
    expect(names.toSorted()).toEqual(
      ['MARK', 'MINE', 'PATH', 'PYTHONDONTWRITEBYTECODE', ...added].toSorted(),
    );
  });

  it('runs in the folder that it is given', async () => {
    const cwd = realpathSync(temporaryDirectory());
    const { ask } = await open({ program, cwd });
    expect(await ask('cwd')).toBe(cwd);
  });
});

it('functions run in the folder of their entry, behind a socket that is nobody else’s', async () => {
  const service = await open({ program: NODE });
  expect(await service.ask('cwd')).toBe(HOSTED);
  const { AFTERWORD_SOCKET: socket } = (await service.ask('env')) as Record<string, string>;
  const folder = dirname(socket!);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  await service.stop();
  expect(existsSync(folder)).toBe(false);
});

it('`serve` keeps its own variables, and those that its configuration refers to, from apps', async () => {
  const place = configure({
    apps: { app: { runtime: 'cortex', entry: NODE.entry, env: { GIVEN: '${DATABASE_PASSWORD}' } } },
    more: { adminToken: '${ADMIN_TOKEN}', data: '${HOME}/data' },
  });
  const service = serve(place, {
    HOME: temporaryDirectory(),
    ADMIN_TOKEN: 'a-token',
    DATABASE_PASSWORD: 'a-password',
    AFTERWORD_APP_TIMEOUT: '30s',
    UNRELATED: 'passed on',
  });
  const { base } = await service.ready;
  const answer = await fetch(`${base}/v4/${PROJECT}/app/env`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${await testToken()}` },
  });
  const { result: env } = (await answer.json()) as { result: Record<string, string> };
  expect(env).toMatchObject({ UNRELATED: 'passed on', GIVEN: 'a-password', PATH: process.env['PATH'] });
  expect(env).toHaveProperty('HOME');
  const names = Object.keys(env).filter(name => name.startsWith('AFTERWORD_'));
  expect(names.toSorted()).toEqual(['AFTERWORD_ENTRY', 'AFTERWORD_SOCKET']);
  expect(Object.keys(env)).not.toContain('ADMIN_TOKEN');
  expect(Object.keys(env)).not.toContain('DATABASE_PASSWORD');
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

describe('a server of the operator’s own', () => {
  it.each([
    ['on the port that it is told', async () => ({ port: await closedPort() })],
    ['on any port', async () => ({})],
    ['with a path for its health', async () => ({ health: '/health' })],
  ])('is called as it is: %s', async (_, more) => {
    const keys: { port?: number; health?: string } = await more();
    const { ask } = await open({ program: { ...CUSTOM, ...keys } });
    expect(await ask('some/path?a=%20b&c')).toMatchObject({
      method: 'POST',
      url: '/some/path?a=%20b&c',
      headers: { 'content-length': '2' },
    });
    const port = await ask('port');
    expect(port).toBe(keys.port ?? port);
  });

  it('takes WebSockets, each of which takes a place until it closes', async () => {
    const service = await open({ program: CUSTOM, concurrency: 1, queue: 0 });
    const { port, token, call, ask } = service;
    await vi.waitUntil(async () => (await call('pid')).status === 200, SOON);
    const socket = await converse(port);
    socket.send(
      [
        `GET ${service.path('app/ws')} HTTP/1.1`,
        'Host: test',
        `Authorization: Bearer ${token}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
        '\r\n',
      ].join('\r\n'),
    );
    await socket.until('101 Switching Protocols');
    socket.send('there and back');
    await socket.until('there and back');
    expect((await call('pid')).status).toBe(429);
    socket.close();
    await vi.waitUntil(async () => (await call('pid')).status === 200, SOON);
    expect(await ask('pid')).toBeGreaterThan(0);
  });
});

describe('a busy app', () => {
  it('has callers wait, and beyond that says when to come back', async () => {
    const inbox = await openInbox();
    onTestFinished(() => inbox.close());
    const folder = temporaryDirectory();
    const { call } = await open({ program: NODE, concurrency: 1, queue: 1 });
    const first = call('hold', { folder, name: 'one' }, inbox.url);
    await appears(join(folder, 'one'));
    // One of these two waits, and there is no room for the other.
    const others = ['two', 'three'].map(name => call('hold', { folder, name }, inbox.url));
    const refused = await Promise.race(others);
    expect([refused.status, refused.header('retry-after')]).toEqual([429, '1']);
    expect(JSON.parse(refused.body.toString())).toMatchObject({ code: 'app_busy', status: 429 });
    for (const name of ['one', 'two', 'three']) writeFileSync(join(folder, `${name}.go`), '');
    expect((await first).status).toBe(200);
    const statuses = (await Promise.all(others)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 429]);
    await inbox.count(2);
    expect(inbox.received.map(({ runId }) => runId)).not.toContain(refused.header('x-request-id'));
  });

  it('does not count callers who have hung up while they waited', async () => {
    const folder = temporaryDirectory();
    const { log, lines } = captureLog();
    const service = await open({ program: NODE, concurrency: 1, queue: 1 }, { log });
    const { call, port, token } = service;
    const first = call('hold', { folder, name: 'one' });
    await appears(join(folder, 'one'));
    const head = `POST ${service.path('app/pid')} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}`;
    const callers = await Promise.all([converse(port), converse(port)]);
    for (const caller of callers) caller.send(`${head}\r\nContent-Length: 0\r\n\r\n`);
    const refused = await Promise.race(callers.map(each => each.until('app_busy').then(() => each)));
    for (const caller of callers) caller.close();
    expect(refused.text).toContain(' 429 ');
    await vi.waitUntil(() => lines.some(({ msg, status }) => msg === 'call' && status === 499), SOON);

    const next = call('pid');
    writeFileSync(join(folder, 'one.go'), '');
    expect([(await first).status, (await next).status]).toEqual([200, 200]);
  });
});

describe('the time limit of a call', () => {
  it('is a 504, and its process is replaced while other calls of it end', async () => {
    const inbox = await openInbox();
    onTestFinished(() => inbox.close());
    const folder = temporaryDirectory();
    const { call, ask } = await open({ program: NODE }, { appTimeout: 3_000 });
    // A process may take longer to start than a call may wait for it.
    const untilReady = () => vi.waitUntil(async () => (await call('pid')).status === 200, SOON);
    await untilReady();
    const pid = (await ask('pid')) as number;
    const other = call('beat', { folder, name: 'other' });
    const late = await call('hold', { folder, name: 'late' }, inbox.url);
    expect([late.status, late.header('content-type')]).toEqual([504, 'application/problem+json']);
    writeFileSync(join(folder, 'late.go'), ''); // in vain
    const error = { type: 'app_timeout', message: 'The app did not answer in time' };
    expect(JSON.parse(late.body.toString())).toMatchObject({ code: 'app_timeout', error });
    const delivery = await inbox.of(late.header('x-request-id')!);
    expect(JSON.parse(delivery.body.toString())).toMatchObject({ status_code: 504, error });

    await untilReady();
    expect(await ask('pid')).not.toBe(pid);
    writeFileSync(join(folder, 'other.go'), '');
    const { status, body } = await other;
    const events = body.toString().trim().split('\n\n');
    expect([status, events[0], events.at(-1)]).toEqual([200, `data: ${pid}`, 'data: "done"']);
    await untilEnded(pid);
  });
});

describe('an app that cannot be started', () => {
  it('is a 502 that says why, to the caller and to the receiver', async () => {
    const inbox = await openInbox();
    onTestFinished(() => inbox.close());
    const { call } = await open({ program: { ...PYTHON, python: 'no-such-python' } });
    const answer = await call('pid', {}, inbox.url);
    expect([answer.status, answer.header('content-type')]).toEqual([502, 'application/problem+json']);
    const message =
      'The app could not be started: its process ended with exit code 127: there is no such command';
    const error = { type: 'app_unreachable', message };
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      code: 'app_unreachable',
      detail: message,
      error,
    });
    const delivery = await inbox.of(answer.header('x-request-id')!);
    expect(JSON.parse(delivery.body.toString())).toMatchObject({ status_code: 502, error });
  });

  it('does not keep the service from starting, nor other apps from being called', async () => {
    const service = await startService({
      apps: {
        broken: { runtime: 'custom', process: { program: shell('exit 1') } },
        fine: { runtime: 'custom', process: { program: CUSTOM } },
      },
    });
    onTestFinished(() => service.stop());
    const call = (app: string) =>
      callRaw({
        port: service.port,
        path: service.path(`${app}/pid`),
        headers: [`Authorization: Bearer ${service.token}`],
      });
    expect([(await call('broken')).status, (await call('fine')).status]).toEqual([502, 200]);
  });
});

describe('the processes of an app', () => {
  it('are there from the beginning', async () => {
    const { mark, ask } = await open({ program: NODE, replicas: 2 });
    // Each of the two with its shell and its guard.
    await vi.waitUntil(() => aliveWith(mark).length >= 6, SOON);
    const before = aliveWith(mark);
    const pid = await ask('pid');
    expect(before).toContain(pid);
  });

  it('are started by the first call where they are to', async () => {
    const { mark, ask } = await open({ program: NODE, start: 'call' });
    expect(aliveWith(mark)).toEqual([]);
    const pid = await ask('pid');
    expect(aliveWith(mark)).toContain(pid);
  });

  it('are replaced under load, and no call is lost', async () => {
    const { call, ...service } = await open({ program: NODE, replicas: 2 });
    const pids = new Set<unknown>();
    const statuses = new Set<number>();
    let calls = 0;
    const load = { over: false };
    const lane = async (): Promise<void> => {
      while (!load.over) {
        const { status, body } = await call('pid');
        statuses.add(status);
        pids.add((JSON.parse(body.toString()) as { result: unknown }).result);
        calls += 1;
      }
    };
    const lanes = Promise.all(Array.from({ length: 6 }, lane));
    for (let replaced = 1; replaced <= 3; replaced += 1) {
      const before = calls;
      await vi.waitUntil(() => calls > before + 10, SOON);
      service.reload('app');
      await vi.waitUntil(() => pids.size > 2 * replaced, SOON);
    }
    load.over = true;
    await lanes;
    expect(statuses).toEqual(new Set([200]));
  });

  it('end with the service, which lets their calls end first', async () => {
    const folder = temporaryDirectory();
    const service = await open({ program: NODE, replicas: 2 });
    await service.ask('leave');
    const holding = service.call('hold', { folder, name: 'one' });
    await appears(join(folder, 'one'));
    const stopped = service.stop();
    await vi.waitUntil(async () => (await service.call('pid').catch(() => undefined)) === undefined, SOON);
    expect(aliveWith(service.mark).length).toBeGreaterThanOrEqual(3);
    writeFileSync(join(folder, 'one.go'), '');
    expect((await holding).status).toBe(200);
    await stopped;
    await untilNoneAlive(service.mark);
  });
});

describe('what an app prints', () => {
  it.each([
    ['TypeScript', NODE],
    ['Python', PYTHON],
  ])('is in the log, with its app and the run that it belongs to: %s', async (_, program) => {
    const { log, lines } = captureLog();
    const { call } = await open({ program }, { log });
    const answers = await Promise.all(['one', 'two'].map(text => call('say', { text })));
    for (const [index, text] of ['one', 'two'].entries()) {
      const run_id = answers[index]!.header('x-request-id');
      const line = {
        level: 'info',
        project_id: PROJECT,
        app: 'app',
        replica: 0,
        stream: 'stdout',
        run_id,
        msg: text,
      };
      await vi.waitFor(() => expect(lines).toContainEqual(expect.objectContaining(line)), SOON);
    }
  });

  it('is in the log in lines of a bounded length', async () => {
    const { log, lines } = captureLog();
    const { call } = await open({ program: NODE }, { log });
    const answer = await call('say', { text: 'x'.repeat(50_000) });
    const own = () =>
      lines.filter(({ run_id, stream }) => stream !== undefined && run_id === answer.header('x-request-id'));
    const length = () => own().reduce((sum, { msg }) => sum + msg.length, 0);
    await vi.waitFor(() => expect(length()).toBe(50_000), SOON);
    expect(Math.max(...own().map(({ msg }) => msg.length))).toBeLessThanOrEqual(16 * 1024);
  });

  it('why it could not be started is in the log', async () => {
    const { log, lines } = captureLog();
    const entry = join(temporaryDirectory(), 'main.py');
    writeFileSync(entry, 'import nothing_like_that');
    await open({ program: { ...PYTHON, entry } }, { log });
    const has = (fields: object) =>
      vi.waitFor(() => expect(lines).toContainEqual(expect.objectContaining(fields)), SOON);
    await has({
      app: 'app',
      stream: 'stderr',
      msg: "ModuleNotFoundError: No module named 'nothing_like_that'",
    });
    await has({
      app: 'app',
      level: 'error',
      msg: 'the app could not be started: its process ended with exit code 1',
    });
  });
});
