/**
 * `afterword deliveries tail` against a real service: live changes, cuts, and deliveries that are brought to a
 * server on this machine.
 */
import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { Delivery } from '../../../src/api/delivery-contract.ts';
import { type Inbox, openInbox, signatureOf } from '../../support/inbox.ts';
import { startRelay } from '../../support/relay.ts';
import { until } from '../../support/waiting.ts';
import type { Running } from '../run.ts';
import { ANSWER, type Ground, idsIn, objectsIn, openGround } from './delivering.ts';

let ground: Ground;

beforeAll(async () => {
  ground = await openGround({ project: { standardWebhooks: true } });
});
afterAll(() => ground.close());
beforeEach(() => ground.answerWith(200));

/** Nobody knows when the stream is open but by what comes of it: until then, something happens now and then. */
async function watching(tail: Running, app = 'web'): Promise<Running> {
  await until(async () => {
    await ground.settled(await ground.deliver({ app }));
    return tail.stdout.text !== '';
  });
  return tail;
}

/** Between the service and whoever asks it: from its streams, it can keep back what they tell. */
async function openForgetful(port: number) {
  const streams = new Set<ServerResponse>();
  let forgets = false;
  const server = createServer((req, res) => {
    const { url: path, method, headers } = req;
    const asked = request({ host: '127.0.0.1', port, path, method, headers }, answer => {
      res.writeHead(answer.statusCode!, answer.headers);
      answer.on('data', piece => void (forgets || res.write(piece))).on('end', () => res.end());
      if (path!.includes('/stream')) streams.add(res);
    });
    res.on('close', () => asked.destroy());
    asked.on('error', () => {});
    req.pipe(asked);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    forget: () => void (forgets = true),
    admit() {
      forgets = false;
      for (const stream of streams) stream.write('event: missed\ndata: {}\n\n');
    },
  };
}

const changesOf = (tail: Running, runId: string) =>
  objectsIn(tail.stdout.text).filter(each => each['run_id'] === runId && !('forwarded_to' in each));

const forwardedIn = (tail: Running) => objectsIn(tail.stdout.text).filter(each => 'forwarded_to' in each);

describe('changes', () => {
  it('are lines of JSON as the API tells it, filtered as asked, until Ctrl-C', async () => {
    const tail = await watching(ground.begin(['tail', '--app', 'web']));
    const other = await ground.deliver({ app: 'other' });
    const runId = await ground.deliver();
    await until(() => changesOf(tail, runId).at(-1)?.['state'] === 'delivered');
    tail.stop();
    expect(await tail.exit).toBe(0);
    expect(tail.stderr.text).toBe('');
    expect(idsIn(tail.stdout.text)).not.toContain(other);
    for (const each of objectsIn(tail.stdout.text)) expect(Delivery.strict().parse(each)).toEqual(each);
  });

  it('are a line each on a terminal', async () => {
    const tail = await watching(ground.begin(['tail'], { terminal: true }));
    ground.answerWith(422);
    const runId = await ground.deliver();
    const [line] = await tail.stdout.match(new RegExp(`^.*${runId}  web  failed.*$`, 'm'));
    expect(line).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} {2}\S+ {2}web {2}failed: rejected {2}422 at attempt 1 {2}http:/,
    );
  });

  it('that a cut has kept back are told after it, and none twice', async () => {
    const relay = await startRelay(ground.service.port);
    const url = `http://127.0.0.1:${relay.port}`;
    const tail = await watching(ground.begin(['tail'], { env: { AFTERWORD_URL: url } }));
    relay.hold();
    const missed = [await ground.deliver(), await ground.deliver({ app: 'other' })];
    await Promise.all(missed.map(runId => ground.settled(runId)));
    relay.cut();
    relay.resume();
    await tail.stderr.match(/^the stream has broken off, connecting again\nconnected again\n$/);
    await until(() => missed.every(runId => changesOf(tail, runId).at(-1)?.['state'] === 'delivered'));
    const next = await ground.deliver();
    await until(() => changesOf(tail, next).at(-1)?.['state'] === 'delivered');
    const lines = tail.stdout.lines;
    expect(new Set(lines).size).toBe(lines.length);
  });

  it('that the stream does not tell, by its own words, are read from the list', async () => {
    const between = await openForgetful(ground.service.port);
    const tail = await watching(ground.begin(['tail'], { env: { AFTERWORD_URL: between.url } }));
    between.forget();
    const missed = await ground.deliver();
    await ground.settled(missed);
    between.admit();
    await until(() => changesOf(tail, missed).length > 0);
    expect(changesOf(tail, missed)).toMatchObject([{ state: 'delivered' }]);
    expect(tail.stderr.text).toBe('');
  });
});

describe('--forward-to', () => {
  let local: Inbox;
  let status = 200;
  beforeEach(async () => {
    status = 200;
    local = await openInbox(() => status);
    onTestFinished(() => local.close());
  });

  const forwarding = (...argv: string[]) => ['tail', '--forward-to', local.url, ...argv];

  it('sends each round once, as the service does, signed with the local secret', async () => {
    const tail = await watching(ground.begin(forwarding('--secret', 'local')));
    const runId = await ground.deliver();
    const [sent, remote] = [await local.of(runId), await ground.inbox.of(runId)];
    expect(sent.body).toEqual(remote.body);
    expect(sent.body.toString()).toContain(ANSWER);
    const names = (headers: object) => Object.keys(headers).sort();
    expect(names(sent.headers)).toEqual(
      [...names(remote.headers), 'webhook-signature', 'x-service-webhook-signature'].sort(),
    );
    expect(sent.headers['x-service-webhook-signature']).toBe(signatureOf(sent, 'local'));
    await ground.settled(runId);
    await ground.command(['redeliver', runId, '--wait']);
    const rounds = () => forwardedIn(tail).filter(each => each['run_id'] === runId);
    await until(() => rounds().length === 2);
    expect(rounds()).toEqual(
      [1, 2].map(round => ({
        run_id: runId,
        round,
        forwarded_to: local.url,
        status: 200,
        total_ms: expect.any(Number) as number,
        excerpt: 'thanks',
      })),
    );
    expect(local.received.filter(each => each.runId === runId)).toHaveLength(2);
  });

  it('makes a secret where none is given, and prints the answer on a terminal', async () => {
    const tail = await watching(ground.begin(forwarding(), { terminal: true }));
    const [, secret] = /^deliveries are signed with the secret (\S{32})\n/.exec(tail.stderr.text)!;
    status = 500;
    const runId = await ground.deliver();
    const sent = await local.of(runId);
    expect(sent.headers['x-service-webhook-signature']).toBe(signatureOf(sent, secret!));
    const [line] = await tail.stdout.match(new RegExp(`^.*${runId}  →.*$`, 'm'));
    expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{3} {2}\S+ {2}→ http:\S+\/hook {2}500 {2}[\d.]+ m?s {2}thanks$/);
  });

  it('sends what the filter finds alone', async () => {
    const argv = forwarding('--state', 'failed', '--app', 'other');
    const tail = ground.begin(argv, { env: { AFTERWORD_WEBHOOK_SECRET: 'from-the-environment' } });
    ground.answerWith(500);
    await watching(tail, 'other');
    const runId = await ground.deliver({ app: 'other' });
    const sent = await local.of(runId);
    expect(sent.headers['x-service-webhook-signature']).toBe(signatureOf(sent, 'from-the-environment'));
    expect(new Set(objectsIn(tail.stdout.text).map(each => each['state'] ?? 'failed'))).toEqual(
      new Set(['failed']),
    );
  });

  it('tells that nobody listens there, and goes on', async () => {
    const tail = await watching(
      ground.begin(['tail', '--forward-to', 'http://127.0.0.1:1/', '--secret', 's']),
    );
    await until(() => forwardedIn(tail).length > 0);
    expect(forwardedIn(tail)[0]).toMatchObject({
      forwarded_to: 'http://127.0.0.1:1/',
      error: { code: 'connection_refused', meaning: 'Nobody listens at the port of the target.' },
    });
    const runId = await ground.deliver();
    await until(() => forwardedIn(tail).some(each => each['run_id'] === runId));
  });

  it('ends at Ctrl-C without waiting for an answer', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => silent.close().closeAllConnections());
    await once(silent, 'listening');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    const tail = ground.begin(['tail', '--forward-to', url, '--secret', 's']);
    const asked = once(silent, 'request');
    await watching(tail);
    await asked;
    tail.stop();
    expect(await tail.exit).toBe(0);
  });
});

it.each([
  [['--secret', 's'], '--secret is for --forward-to'],
  [['--forward-to', 'localhost:3000'], 'It is not an absolute http or https URL.'],
  [['--state', 'done'], '--state'],
])('deliveries tail %j is wrong usage', async (argv, message) => {
  const { code, stdout, stderr } = await ground.command(['tail', ...argv]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});
