/**
 * Waiting for the end of a run, from a service that a test can stop, start and let answer as it likes.
 */
import { createServer, type RequestListener, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunOptions, type Running, start } from './run.ts';

const RUN = '01a1dd95-24aa-770e-a088-7159dba3d142';
const RUNNING = `{"run_id":"${RUN}","project_id":"p","app":"hello","state":"running","created_at":"2026-11-15T05:01:41.456Z","starts":1}`;
const ENDED = `{"state":"succeeded","created_at":"2026-11-15T05:01:41.456Z","starts":1,"run_id":"${RUN}","project_id":"p","app":"hello","status_code":200,"result":12345678901234567890}`;

/** Nobody else listens there, so that a port that was given up can be had again. */
const HOST = '127.0.0.3';

let server: Server | undefined;
let port = 0;
let asked: string[] = [];
/** How the next requests are answered, the last one for all that follow. */
let answers: RequestListener[] = [];

async function open(): Promise<void> {
  server = createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`);
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
    answer(req, res);
  }).listen(port, HOST);
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
}

async function shut(): Promise<void> {
  if (server === undefined) return;
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  server = undefined;
  await closed;
}

beforeEach(async () => {
  [asked, port] = [[], 0];
  await open();
});
afterEach(shut);

const accepted: RequestListener = (_, res) => void res.writeHead(202, { 'X-Request-Id': RUN }).end();
const running: RequestListener = (_, res) => void res.end(RUNNING);
const ended: RequestListener = (_, res) => void res.end(ENDED);
const silent: RequestListener = () => {};
const cutOff: RequestListener = (_, res) =>
  void res.writeHead(200, { 'Content-Length': 1000 }).write('{"st', () => res.destroy());

function problem(status: number, code: string): RequestListener {
  const body = JSON.stringify({ status, detail: 'told why', code, run_id: RUN });
  const headers = { 'Content-Type': 'application/problem+json', 'X-Request-Id': RUN };
  return (_, res) => void res.writeHead(status, headers).end(body);
}

function wait(argv: readonly string[] = [], options: RunOptions = {}): Running {
  const service = ['--url', `http://${HOST}:${port}`, '-p', 'p', '--token', 't'];
  return start(['call', 'hello/run', '--wait', ...service, ...argv], options);
}

const untilAsked = async (times: number): Promise<void> => {
  while (asked.length < times) await once(server!, 'request');
};

describe('a run that ends', () => {
  it('is waited for with one request after another, and printed as it came', async () => {
    answers = [accepted, running, running, ended];
    const { exit, stdout, stderr } = wait();
    expect(await exit).toBe(0);
    expect(stdout.text).toBe(`${ENDED}\n`);
    expect(stderr.text).toBe(`run ${RUN}\n`);
    const look = `GET /v4/p/_runs/${RUN}?wait=30s`;
    expect(asked).toEqual(['POST /v4/p/hello/run?async=true', look, look, look]);
  });

  it.each<[string, RequestListener]>([
    ['an answer that breaks off', cutOff],
    ['a service that cannot answer now', problem(503, 'store_unavailable')],
    ['a proxy that has lost it', (_, res) => void res.writeHead(502).end('<h1>Bad Gateway</h1>')],
  ])('is waited for in spite of %s', async (_, fault) => {
    answers = [accepted, fault, ended];
    const { exit, stdout } = wait();
    expect(await exit).toBe(0);
    expect(stdout.text).toBe(`${ENDED}\n`);
  });

  it('is waited for while the service is away', async () => {
    answers = [accepted, silent];
    const { exit, stderr, stdout } = wait([], { terminal: true });
    await untilAsked(2);
    await shut();
    await stderr.match(/out of reach, trying again/);
    answers = [ended];
    await open();
    expect(await exit).toBe(0);
    expect(stdout.text).toContain('"result": 12345678901234567890');
  });
});

describe('a wait that ends before the run', () => {
  it('ends with the time', async () => {
    answers = [accepted, running];
    const { exit, stdout, stderr } = wait(['--timeout', '1s']);
    expect(await exit).toBe(1);
    expect(stdout.text).toBe('');
    expect(stderr.lines[1]).toBe(
      `error: the run has not ended within 1s; look again with: afterword runs show ${RUN} --wait`,
    );
    expect(asked[1]).toBe(`GET /v4/p/_runs/${RUN}?wait=1s`);
  });

  it('ends with Ctrl-C, and cancels nothing', async () => {
    answers = [accepted, silent];
    const waiting = wait();
    const { exit, stdout, stderr } = waiting;
    await untilAsked(2);
    waiting.stop();
    expect(await exit).toBe(130);
    expect(stdout.text).toBe('');
    expect(stderr.lines[1]).toBe(`the run goes on; look again with: afterword runs show ${RUN} --wait`);
    expect(asked.filter(line => line.includes('cancel'))).toEqual([]);
  });

  it('ends with a refusal', async () => {
    answers = [accepted, problem(404, 'run_not_found')];
    const { exit, stderr } = wait();
    expect(await exit).toBe(1);
    expect(stderr.lines[1]).toBe(`error: told why (run_not_found, run ${RUN})`);
  });

  it('ends with an answer that tells of no run', async () => {
    answers = [accepted, (_, res) => void res.end('<h1>Welcome</h1>')];
    const { exit, stderr } = wait();
    expect(await exit).toBe(1);
    expect(stderr.lines[1]).toContain('is this the service?');
  });
});

describe('on a terminal', () => {
  it('shows the state and the time in a line that is gone at the end', async () => {
    answers = [accepted, running, ended];
    const { exit, stderr } = wait([], { terminal: true });
    expect(await exit).toBe(0);
    const drawn = stderr.text.split('\r');
    expect(drawn[1]).toBe(`⠋ ${RUN} waiting 0 s\u001b[K`);
    expect(drawn.map(line => line.replace(/\d+ s/, 'N s').slice(1))).toContain(` ${RUN} running N s\u001b[K`);
    expect(drawn.at(-1)).toBe('\u001b[K');
  });

  it('removes the line at Ctrl-C, and draws no other', async () => {
    answers = [accepted, silent];
    const waiting = wait([], { terminal: true });
    await untilAsked(2);
    waiting.stop();
    expect(await waiting.exit).toBe(130);
    expect(waiting.stderr.text.split('\r').at(-1)).toMatch(/^.\[Kthe run goes on; .*\n$/);
  });

  it('lays the run and its answer out', async () => {
    answers = [accepted, ended];
    const { exit, stdout } = wait([], { terminal: true });
    expect(await exit).toBe(0);
    expect(stdout.text).toBe(
      [
        `run       ${RUN}`,
        'app       hello',
        'state     succeeded',
        'status    200',
        'created   2026-11-15 05:01:41Z',
        '{',
        '  "result": 12345678901234567890',
        '}',
        '',
      ].join('\n'),
    );
  });

  it('shows the beginning of a large answer, and where the whole of it is', async () => {
    const type = JSON.stringify('not,"result":{');
    const large = ENDED.replace(/"result":\d+/, `"content_type":${type},"result":"${'x'.repeat(200_000)}"`);
    answers = [accepted, (_, res) => void res.end(large)];
    const { exit, stdout } = wait([], { terminal: true });
    expect(await exit).toBe(0);
    expect(stdout.text).toContain('state     succeeded\n');
    expect(stdout.text.length).toBeLessThan(large.length);
    expect(stdout.lines.at(-1)).toBe(`… the whole of it: afterword runs show ${RUN} --json`);
  });
});
