/**
 * `/v4/{project}/_…`: no app has such a name, and what lies there is answered by the service itself, after the
 * token was checked.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiCall } from '../../src/gateway/intake.ts';
import { callRaw, type RawAnswer } from '../support/caller.ts';
import { PROJECT, testToken } from '../support/service.ts';
import { until } from '../support/waiting.ts';
import { openRig, type Rig } from './rig.ts';

interface Handed extends ApiCall {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/** What the API was given, in place of one. */
let handed: Handed[] = [];
let rig: Rig;

/** Answers with what it got; to `/_wait…`, when the signal says so. */
function api(req: IncomingMessage, res: ServerResponse, call: ApiCall): void {
  handed.push({ req, res, ...call });
  if (req.url!.includes('/_wait')) {
    call.signal.addEventListener('abort', () => res.end('what is there'));
    return;
  }
  res.writeHead(299).write(`${req.method} ${req.url} `);
  // The request of a caller without a body is closed already.
  if (req.destroyed) res.end();
  else req.pipe(res);
}

beforeAll(async () => {
  rig = await openRig({ api });
});
afterAll(() => rig.stop());
beforeEach(() => {
  handed = [];
});

function own(path: string, options: { method?: string; body?: string } = {}): Promise<RawAnswer> {
  return callRaw({ port: rig.port, path: `/v4/${PROJECT}/${path}`, headers: [rig.auth], ...options });
}

describe("a request below the service's own paths", () => {
  it.each([
    '_runs',
    '_runs/',
    '_runs/x?wait=1s',
    '_deliveries/x/y',
    '_',
    '_runs?async=true&webhookEndpoint=',
  ])('is handed over as it came: %s', async path => {
    const answer = await own(path, { method: 'POST', body: 'body' });
    expect([answer.status, answer.body.toString()]).toEqual([299, `POST /v4/${PROJECT}/${path} body`]);
    expect(handed).toHaveLength(1);
    expect(handed[0]).toMatchObject({ projectId: PROJECT, runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    expect(handed[0]!.signal.aborted).toBe(false);
  });

  it('is asked for its body where its caller waits for that', async () => {
    const caller = await rig.converse();
    const head = rig.head({
      path: '',
      method: 'POST',
      headers: ['Expect: 100-continue', 'Content-Length: 2'],
    });
    caller.send(head.replace('/custom/', '/_runs'));
    await caller.until('100 Continue');
    caller.send('hi');
    expect(await caller.until('hi\r\n')).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 299 /);
    caller.close();
  });

  it('is logged, and is no call', async () => {
    const before = rig.calls.length;
    await own('_runs/x?secret=1');
    const { runId } = handed[0]!;
    await until(() => rig.logs().includes(runId));
    const line = JSON.parse(
      rig
        .logs()
        .split('\n')
        .find(text => text.includes(runId))!,
    );
    expect(line).toMatchObject({
      msg: 'request',
      project_id: PROJECT,
      method: 'GET',
      path: '/_runs/x',
      status: 299,
    });
    expect(rig.calls).toHaveLength(before);
  });

  it.each([
    ['without a token', [], 401],
    ["with another project's token", ['p-other'], 403],
  ])('is refused %s', async (_what, projects, status) => {
    const headers = await Promise.all(
      projects.map(async id => `Authorization: Bearer ${await testToken(id)}`),
    );
    const answer = await callRaw({ port: rig.port, path: `/v4/${PROJECT}/_runs`, headers });
    expect(answer.status).toBe(status);
    expect(handed).toEqual([]);
  });

  it.each(['%5Fruns', 'runs', '-runs'])('is not %s, which would be an app', async path => {
    const answer = await own(path);
    expect([answer.status, JSON.parse(answer.body.toString()).code]).toEqual([404, 'app_not_found']);
  });

  it('is nowhere as a WebSocket', async () => {
    const caller = await rig.converse();
    const head = rig.head({ path: '', headers: ['Connection: Upgrade', 'Upgrade: websocket'] });
    caller.send(head.replace('/custom/', '/_runs'));
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 404 .*"code":"not_found"/s);
    expect(handed).toEqual([]);
  });

  it('is nowhere in a gateway that has none', async () => {
    const bare = await openRig();
    const answer = await callRaw({ port: bare.port, path: `/v4/${PROJECT}/_runs`, headers: [bare.auth] });
    expect([answer.status, JSON.parse(answer.body.toString()).code]).toEqual([404, 'not_found']);
    await bare.stop();
  });
});

describe.each([
  ['a stop', false],
  ['a hand-over', true],
])('%s of the gateway', (_what, handOver) => {
  it('has whoever waits answered, and waits for that', async () => {
    const stopped = await openRig({ api });
    const caller = await stopped.converse();
    caller.send(stopped.head({ path: '' }).replace('/custom/', '/_wait'));
    await until(() => handed.length > 0);
    const stopping = stopped.stop(15_000, handOver);
    expect(await caller.until('what is there')).toMatch(/^HTTP\/1\.1 200 /);
    caller.close();
    await stopping;
  });
});
