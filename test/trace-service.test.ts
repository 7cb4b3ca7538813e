/**
 * A whole service that is traced: the spans of calls, runs and attempts as a collector gets them, what the app
 * and the receiver are told, and nothing of it where nothing is traced.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SamplerName } from '../src/config/config.ts';
import { readTraceparent } from '../src/trace.ts';
import { openApp, type TestApp } from './support/app.ts';
import { callRaw, dial, parseAnswer, type RawAnswer, readAll } from './support/caller.ts';
import { type CollectedSpan, type Collector, openCollector } from './support/collector.ts';
import { type Inbox, openInbox } from './support/inbox.ts';
import { PROJECT, startService, type TestService } from './support/service.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const PARENT = `00-${TRACE}-${SPAN}-01`;

let app: TestApp;
let inbox: Inbox;
let collector: Collector;
let service: TestService;
/** Of the last request that the app got, and the statuses that the receiver is to give. */
let seen: IncomingHttpHeaders;
let answers: number[];

function start(name: SamplerName = 'parentbased_always_on'): Promise<TestService> {
  const batch = {
    scheduledDelayMillis: 20,
    maxQueueSize: 2048,
    maxExportBatchSize: 512,
  };
  return startService({
    apps: {
      web: { runtime: 'custom', url: `${app.url}/base/` },
      gone: { runtime: 'custom', url: 'http://127.0.0.1:9' },
    },
    tracing: {
      endpoint: collector.url,
      headers: {},
      timeout: 5_000,
      resource: {},
      sampler: { name, ratio: 1 },
      batch,
    },
  });
}

beforeAll(async () => {
  app = await openApp((req, res) => {
    seen = req.headers;
    res.writeHead(Number(/\d{3}$/.exec(req.url!.split('?')[0]!)?.[0] ?? 200)).end('{}');
  });
  inbox = await openInbox(() => answers.shift() ?? 200);
  collector = await openCollector();
  service = await start();
});

beforeEach(() => {
  answers = [];
  seen = {};
});

afterAll(async () => {
  await service.stop();
  await collector[Symbol.asyncDispose]();
  await inbox.close();
  await app.close();
});

interface Asked {
  readonly hook?: boolean;
  readonly headers?: readonly string[];
  readonly at?: TestService;
}

function call(path: string, { hook = false, headers = [], at = service }: Asked = {}): Promise<RawAnswer> {
  return callRaw({
    port: at.port,
    method: 'POST',
    path: at.path(path, hook ? inbox.url : undefined),
    headers: [`Authorization: Bearer ${at.token}`, ...headers],
    body: '{}',
  });
}

const runIdOf = (answer: RawAnswer): string => answer.header('x-request-id')!;
const contextOf = ({ traceId, spanId }: CollectedSpan): string => `00-${traceId}-${spanId}-01`;

function only(spans: readonly CollectedSpan[], kind: CollectedSpan['kind']): CollectedSpan[] {
  return spans.filter(each => each.kind === kind);
}

describe('a call', () => {
  it('is a span of the server, whose context its app gets', async () => {
    const answer = await call('web/greet?secret=1', { headers: [`traceparent: ${PARENT}`] });
    const runId = runIdOf(answer);
    const [span] = await collector.ofRun(runId, 1);
    expect(span).toMatchObject({
      kind: 'server',
      traceId: TRACE,
      parentSpanId: SPAN,
      name: 'POST /v4/{project_id}/{app}/{rest}',
      failed: false,
      links: [],
    });
    expect(span!.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/v4/{project_id}/{app}/{rest}',
      'http.response.status_code': 200,
      'url.path': `/v4/${PROJECT}/web/greet`,
      'url.scheme': 'http',
      'server.address': 'test',
      'server.port': 80,
      'afterword.run_id': runId,
      'afterword.project_id': PROJECT,
      'afterword.app': 'web',
    });
    expect(seen['traceparent']).toBe(contextOf(span!));
  });

  it('begins a trace where its caller has none', async () => {
    const [span] = await collector.ofRun(runIdOf(await call('web')), 1);
    expect(span).toMatchObject({ parentSpanId: '' });
    expect(seen['traceparent']).toBe(contextOf(span!));
  });

  it.each([
    ['malformed', ['traceparent: 00-nonsense-01', 'tracestate: a=1']],
    ['given twice', [`traceparent: ${PARENT}`, `traceparent: ${PARENT}`]],
  ])('passes over a traceparent that is %s', async (_, headers) => {
    const [span] = await collector.ofRun(runIdOf(await call('web', { headers })), 1);
    expect(span!.traceId).not.toBe(TRACE);
    expect(seen).not.toHaveProperty('tracestate');
    expect(seen['traceparent']).toBe(contextOf(span!));
  });

  it('hands the state of the trace on', async () => {
    await call('web', { headers: [`traceparent: ${PARENT}`, 'tracestate: a=1', 'tracestate: b=2'] });
    expect(seen['tracestate']?.toString().replaceAll(' ', '')).toBe('a=1,b=2');
  });

  it('is an error where its app failed, and no error of ours where its caller did', async () => {
    const [broken, wrong] = [await call('web/500'), await call('web/404')];
    const [ofBroken] = await collector.ofRun(runIdOf(broken), 1);
    expect(ofBroken).toMatchObject({ failed: true, attributes: { 'error.type': '500' } });
    const [ofWrong] = await collector.ofRun(runIdOf(wrong), 1);
    expect(ofWrong).toMatchObject({ failed: false, attributes: { 'http.response.status_code': 404 } });
    expect(ofWrong!.attributes).not.toHaveProperty('error.type');
  });

  it('tells what kept it from its app', async () => {
    const [span] = await collector.ofRun(runIdOf(await call('gone')), 1);
    expect(span).toMatchObject({ failed: true, attributes: { 'error.type': 'app_unreachable' } });
  });

  it('is told of when it is refused, too', async () => {
    const answer = await call('nowhere/x');
    expect(await collector.ofRun(runIdOf(answer), 1)).toMatchObject([
      {
        kind: 'server',
        failed: false,
        attributes: {
          'http.response.status_code': 404,
          'error.type': 'app_not_found',
          'afterword.project_id': PROJECT,
          'afterword.app': 'nowhere',
        },
      },
    ]);
  });
});

describe('a host that is', () => {
  it.each([
    ['a name', 'calls.example', 'calls.example', 80],
    ['one with a port', 'calls.example:8080', 'calls.example', 8080],
    ['an address of version 6', '[::1]:8080', '[::1]', 8080],
    ['one of those without a port', '[::1]', '[::1]', 80],
    ['made up', 'x:-5', 'x:-5', 80],
    ['very long', 'x'.repeat(9_000), 'x'.repeat(4_096), 80],
  ])('%s', async (_, host, address, port) => {
    const socket = await dial(service.port);
    const head = `GET ${service.path('web')} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    socket.write(head);
    const answer = parseAnswer(await readAll(socket));
    const [span] = await collector.ofRun(runIdOf(answer), 1);
    expect(span!.attributes).toMatchObject({
      'server.address': address,
      'server.port': port,
      'http.response.status_code': 401,
    });
  });
});

describe('an attempt', () => {
  it('is a span of its own in the trace of its call, linked to it', async () => {
    answers = [503, 200];
    const answer = await call('web', { hook: true, headers: [`traceparent: ${PARENT}`] });
    const runId = runIdOf(answer);
    const { headers } = await inbox.of(runId);
    const spans = await collector.ofRun(runId, 2);
    const [[server], [attempt]] = [only(spans, 'server'), only(spans, 'client')];
    const target = new URL(inbox.url);
    expect(attempt).toMatchObject({
      traceId: TRACE,
      parentSpanId: server!.spanId,
      name: 'POST',
      failed: true,
    });
    expect(attempt!.links).toEqual([{ traceId: TRACE, spanId: server!.spanId }]);
    expect(attempt!.attributes).toEqual({
      'http.request.method': 'POST',
      'http.response.status_code': 503,
      'error.type': '503',
      'server.address': target.hostname,
      'server.port': Number(target.port),
      'afterword.run_id': runId,
      'afterword.project_id': PROJECT,
      'afterword.app': 'web',
      'afterword.attempt': 1,
      'afterword.round': 1,
    });
    expect(headers['traceparent']).toBe(contextOf(attempt!));
  });

  it('that is made again has another, with another context', async () => {
    answers = [404, 200];
    const runId = runIdOf(await call('web', { hook: true }));
    const spans = await collector.ofRun(runId, 3);
    const attempts = only(spans, 'client');
    expect(attempts.map(each => each.attributes['afterword.attempt'])).toEqual([1, 2]);
    expect(attempts.map(({ failed }) => failed)).toEqual([true, false]);
    const told = inbox.received.filter(each => each.runId === runId).map(each => each.headers['traceparent']);
    expect(told).toEqual(attempts.map(contextOf));
    const [server] = only(spans, 'server');
    for (const { parentSpanId, links } of attempts) {
      expect({ parentSpanId, links }).toMatchObject({
        parentSpanId: server!.spanId,
        links: [{ spanId: server!.spanId }],
      });
    }
  });
});

it('a run is a span of its own, linked to the call that asked for it', async () => {
  const answer = await call('web?async=true', { hook: true, headers: [`traceparent: ${PARENT}`] });
  expect(answer.status).toBe(202);
  const runId = runIdOf(answer);
  const { headers } = await inbox.of(runId);
  const spans = await collector.ofRun(runId, 3);
  const [server, run] = [only(spans, 'server')[0]!, only(spans, 'consumer')[0]!];
  expect(server).toMatchObject({ traceId: TRACE, parentSpanId: SPAN });
  expect(run).toMatchObject({
    traceId: TRACE,
    parentSpanId: server.spanId,
    links: [{ traceId: TRACE, spanId: server.spanId }],
    name: 'run',
    failed: false,
    attributes: { 'http.response.status_code': 200, 'afterword.app': 'web' },
  });
  expect(seen['traceparent']).toBe(contextOf(run));
  const attempt = only(spans, 'client')[0]!;
  expect(attempt.parentSpanId).toBe(run.spanId);
  expect(attempt.links).toEqual([{ traceId: TRACE, spanId: run.spanId }]);
  expect(headers['traceparent']).toBe(contextOf(attempt));
});

describe('what is not sampled', () => {
  it('by its caller is not told, and says so to app and receiver', async () => {
    const headers = [`traceparent: 00-${TRACE}-${SPAN}-00`];
    const runId = runIdOf(await call('web', { hook: true, headers }));
    const { headers: delivered } = await inbox.of(runId);
    for (const told of [seen['traceparent'], delivered['traceparent']]) {
      const ids = readTraceparent(String(told));
      expect(ids).toMatchObject({ traceId: TRACE, sampled: false });
      expect(ids!.spanId).not.toBe(SPAN);
    }
    const next = runIdOf(await call('web'));
    await collector.ofRun(next, 1); // whatever came before has been sent by then
    expect(collector.spans.filter(each => each.attributes['afterword.run_id'] === runId)).toEqual([]);
  });

  it('by the sampler, whatever its caller says, is told to nobody', async () => {
    const sparing = await start('always_off');
    const runId = runIdOf(await call('web', { headers: [`traceparent: ${PARENT}`], at: sparing }));
    expect(readTraceparent(String(seen['traceparent']))).toMatchObject({ traceId: TRACE, sampled: false });
    await sparing.stop(); // sends what is left
    expect(collector.spans.filter(each => each.attributes['afterword.run_id'] === runId)).toEqual([]);
  });
});

it('sends what is left when it stops, with the name of the service', async () => {
  const leaving = await start();
  const runId = runIdOf(await call('web', { at: leaving }));
  await leaving.stop();
  expect(collector.spans.filter(each => each.attributes['afterword.run_id'] === runId)).toHaveLength(1);
  expect(collector.resource).toMatchObject({ 'service.name': 'afterword', 'service.version': '0.0.0-test' });
});

it('where nothing is traced, the app gets what its caller sent, and the receiver nothing', async () => {
  const plain = await startService({ apps: { web: { runtime: 'custom', url: app.url } } });
  const headers = ['TraceParent: 00-as-it-came', 'tracestate: a=1'];
  const runId = runIdOf(await call('web', { hook: true, headers, at: plain }));
  expect(seen).toMatchObject({ traceparent: '00-as-it-came', tracestate: 'a=1' });
  expect((await inbox.of(runId)).headers).not.toHaveProperty('traceparent');
  await plain.stop();
});
