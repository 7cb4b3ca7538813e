/**
 * Secrets stay secret: canaries are sent through everything that the service does, and are then looked for,
 * in every spelling, in all that it writes, logs, answers and delivers.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { issueToken } from '../../src/token.ts';
import { openApp, readText } from '../support/app.ts';
import { callRaw, dial, readAll } from '../support/caller.ts';
import { type Addresses, configure, type Place, serve, type ServiceProcess } from '../support/process.ts';
import { closedPort, type Receiver, startReceiver } from '../support/receivers.ts';
import { PROJECT } from '../support/service.ts';

const SOON = { timeout: 20_000, interval: 20 };
const OTHER = 'p-other';

/** Everything that must not be found, by what it is. */
interface Secrets {
  readonly webhookSecret: string;
  readonly password: string;
  readonly jwtSecret: string;
  readonly token: string;
  readonly adminToken: string;
  readonly encryptionKey: Buffer;
}

async function makeSecrets(): Promise<Secrets> {
  const canary = (name: string): string => `canary-${name}-${randomBytes(18).toString('hex')}`;
  const jwtSecret = canary('jwt');
  return {
    webhookSecret: canary('webhook'),
    password: canary('password'),
    jwtSecret,
    token: await tokenFor(PROJECT, jwtSecret),
    adminToken: canary('admin'),
    encryptionKey: randomBytes(32),
  };
}

function tokenFor(projectId: string, secret: string): Promise<string> {
  return issueToken({ secret, projectId, ttlSeconds: 600, clock: systemClock });
}

/** The ways in which bytes may have been written down; in base64 at whatever place of a longer text. */
function spellingsOf(secret: Buffer): Buffer[] {
  const base64 = [0, 1, 2].map(shift => {
    const text = Buffer.concat([Buffer.alloc(shift), secret]).toString('base64');
    return text.slice(Math.ceil((shift * 8) / 6) + (shift > 0 ? 1 : 0), -4);
  });
  const texts = [
    ...base64,
    ...base64.map(text => text.replaceAll('+', '-').replaceAll('/', '_')),
    secret.toString('hex'),
    secret.toString('hex').toUpperCase(),
  ];
  return [secret, ...texts.map(text => Buffer.from(text))];
}

/** Names of the secrets that `bytes` give away. */
function leaksIn(bytes: Buffer, secrets: Partial<Secrets>): string[] {
  return Object.entries(secrets)
    .filter(([, secret]) => spellingsOf(Buffer.from(secret)).some(spelling => bytes.includes(spelling)))
    .map(([name]) => name);
}

function filesBelow(dir: string): Map<string, Buffer> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  const paths = files.map(entry => join(entry.parentPath, entry.name));
  return new Map(paths.map(path => [path, readFileSync(path)]));
}

interface Rig {
  readonly place: Place;
  readonly secrets: Secrets;
  readonly receiver: Receiver;
  /** All that callers got, and all that the apps got. */
  readonly answers: Buffer[];
  readonly asked: string[];
}

/** Apps that tell what they were told, one that is not there, and a receiver that refuses what it is asked to. */
async function prepare(more: (secrets: Secrets) => Record<string, unknown>): Promise<Rig> {
  const secrets = await makeSecrets();
  const asked: string[] = [];
  const tell = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const told = `${req.method} ${req.url} ${JSON.stringify(req.rawHeaders)} ${await readText(req)}`;
    asked.push(told);
    const fill = req.url!.includes('large') ? 'x'.repeat(300_000) : '';
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify({ told, fill }));
  };
  const app = await openApp((req, res) => void tell(req, res));
  const receiver = await startReceiver(({ url }, response) => {
    response.writeHead(Number(/\d{3}/.exec(url)?.[0] ?? 200)).end();
  });
  onTestFinished(async () => {
    await app.close();
    await receiver.close();
  });
  const jwt = { secret: secrets.jwtSecret };
  const place = configure({
    apps: {
      custom: { runtime: 'custom', url: app.url },
      cortex: { runtime: 'cortex', url: app.url },
      gone: { runtime: 'custom', url: `http://127.0.0.1:${await closedPort()}` },
    },
    more: { projects: { [PROJECT]: { jwt }, [OTHER]: { jwt } }, logLevel: 'debug', ...more(secrets) },
  });
  return { place, secrets, receiver, answers: [], asked };
}

/** Calls that succeed, or fail for reasons of the app or the receiver. */
async function callWell(rig: Rig, { port }: Addresses): Promise<void> {
  const { secrets, receiver, answers } = rig;
  const paths = ['custom/ok?a=1', 'custom/large', 'cortex/run', 'gone/x'];
  for (const path of paths) {
    for (const hook of ['', '/404', '/500']) {
      const target = new URL(`${receiver.url}${hook}/hook?q=1`);
      target.username = 'someone';
      target.password = secrets.password;
      const join = path.includes('?') ? '&' : '?';
      const answer = await callRaw({
        port,
        method: 'POST',
        path: `/v4/${PROJECT}/${path}${join}webhookEndpoint=${encodeURIComponent(target.href)}`,
        headers: [`Authorization: Bearer ${secrets.token}`, `X-Webhook-Secret: ${secrets.webhookSecret}`],
        body: '{"a":1}',
      });
      expect(answer.status).toBe(path.startsWith('gone') ? 502 : 200);
      answers.push(answer.bytes);
    }
  }
}

/** Calls that are refused, each with secrets where they do not belong or with too many of them. */
async function callBadly({ secrets, answers, receiver }: Rig, { port }: Addresses): Promise<void> {
  const { token, webhookSecret, password } = secrets;
  const bearer = `Authorization: Bearer ${token}`;
  const secret = `X-Webhook-Secret: ${webhookSecret}`;
  const path = `/v4/${PROJECT}/custom/x`;
  const hook = (endpoint: string): string => `${path}?webhookEndpoint=${encodeURIComponent(endpoint)}`;
  const calls: Array<[status: number, path: string, ...headers: string[]]> = [
    [401, path, `${bearer}x`],
    [401, path, `Authorization: Basic ${token}`],
    [401, path, bearer, bearer],
    [403, `/v4/${OTHER}/custom/x`, bearer],
    [400, hook(`http://someone:${password}@`), bearer],
    [400, hook(`ftp://someone:${password}@example.com/`), bearer],
    [400, hook(`http://someone:${password}@10.0.0.1/`), bearer, secret],
    [400, `${hook(receiver.url)}&webhookEndpoint=http://someone:${password}@example.com/`, bearer],
    [400, hook(receiver.url), bearer, secret, secret],
    [400, hook(receiver.url), bearer, `${secret}${'x'.repeat(1_024)}`],
    [404, `/v4/${PROJECT}/none/x`, bearer, secret],
    [405, `/v4/${PROJECT}/cortex/run`, bearer, secret],
    [417, path, bearer, secret, `Expect: ${webhookSecret}`],
    [431, path, bearer, secret, `X-Long: ${webhookSecret.repeat(1_000)}`],
    [400, path, bearer, `${webhookSecret} is no header`],
  ];
  for (const [status, target, ...headers] of calls) {
    const answer = await callRaw({ port, path: target, headers });
    expect([target.replace(password, '*'), answer.status]).toEqual([target.replace(password, '*'), status]);
    answers.push(answer.bytes);
  }
  const upgrading = await dial(port);
  upgrading.write(
    `GET ${hook(receiver.url)} HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `${bearer}\r\n${secret}\r\n\r\n`,
  );
  answers.push(await readAll(upgrading));
}

async function readMetrics({ admin }: Addresses, { adminToken }: Secrets): Promise<Buffer> {
  const texts: string[] = [];
  for (const token of [adminToken, `${adminToken}x`]) {
    const response = await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    texts.push(JSON.stringify([...response.headers]), await response.text());
  }
  return Buffer.from(texts.join('\n'));
}

/** The deliveries, but for the one header that is meant to carry a credential. */
function deliveredTo({ requests }: Receiver): Buffer {
  const pieces = requests.flatMap(({ url, headers, body }) => [
    Buffer.from(url + JSON.stringify({ ...headers, authorization: undefined })),
    body,
  ]);
  return Buffer.concat(pieces);
}

/** Calls of all kinds, a crash while deliveries are pending, and a start that takes them up. */
async function live(rig: Rig): Promise<{ services: ServiceProcess[]; metrics: Buffer }> {
  const first = serve(rig.place);
  const at = await first.ready;
  await callBadly(rig, at);
  await callWell(rig, at);
  // Those that were answered with 404 are due again by the time of the crash, or soon after.
  await vi.waitUntil(() => rig.receiver.requests.length >= 12, SOON);
  const metrics = await readMetrics(at, rig.secrets);
  await first.kill();
  expectClean(filesBelow(rig.place.data), rig.secrets);
  const second = serve(rig.place);
  const again = await second.ready;
  const last = (): number =>
    rig.receiver.requests.filter(({ headers }) => headers['x-service-webhook-attempt'] === '3').length;
  await vi.waitUntil(() => last() >= 4, SOON);
  const more = await readMetrics(again, rig.secrets);
  await second.stop();
  return { services: [first, second], metrics: Buffer.concat([metrics, more]) };
}

function expectClean(places: ReadonlyMap<string, Buffer>, secrets: Partial<Secrets>): void {
  const leaks = [...places].map(([place, bytes]) => [place, leaksIn(bytes, secrets)] as const);
  expect(leaks.filter(([, names]) => names.length > 0)).toEqual([]);
}

describe('the search', () => {
  it('finds a secret in each of its spellings', async () => {
    const secrets = await makeSecrets();
    for (const [name, secret] of Object.entries(secrets)) {
      const bytes = Buffer.from(secret);
      for (const spelling of [
        bytes,
        Buffer.from(bytes.toString('hex')),
        ...['', 'a', 'ab'].map(start =>
          Buffer.from(Buffer.concat([Buffer.from(start), bytes, Buffer.from('tail')]).toString('base64')),
        ),
      ]) {
        expect(leaksIn(Buffer.concat([randomBytes(9), spelling, randomBytes(9)]), secrets)).toEqual([name]);
      }
    }
  });
});

describe('a service that is told secrets', () => {
  it('keeps them out of its files, logs, metrics, answers and deliveries', async () => {
    const rig = await prepare(({ adminToken, encryptionKey }) => ({
      adminToken,
      encryptionKey: encryptionKey.toString('base64'),
    }));
    const { services, metrics } = await live(rig);
    const { secrets, place, receiver, answers, asked } = rig;

    const logs = services.map(({ stderr }) => stderr).join('');
    const delivered = deliveredTo(receiver);
    const files = filesBelow(place.data);
    // What is searched is what it should be: all of it tells of the runs.
    const runId = String(receiver.requests[0]!.headers['x-request-id']);
    expect([
      logs.includes(runId),
      delivered.includes(runId),
      metrics.includes('afterword_calls_total'),
    ]).toEqual([true, true, true]);
    expect(files.get(join(place.data, 'afterword.db'))!.includes(`${receiver.url}/500/hook`)).toBe(true);
    expect(receiver.requests.every(({ headers }) => headers.authorization?.startsWith('Basic '))).toBe(true);

    expectClean(files, secrets);
    expectClean(
      new Map([
        ['the log', Buffer.from(logs)],
        ['the metrics', metrics],
        ['the answers', Buffer.concat(answers)],
        ['the apps', Buffer.from(asked.join('\n'))],
        ['the deliveries', delivered],
      ]),
      secrets,
    );
  });

  it('keeps a key of its own making in the one file that is for it', async () => {
    const rig = await prepare(() => ({}));
    const service = serve(rig.place);
    await callWell(rig, await service.ready);
    await service.kill();
    const files = filesBelow(rig.place.data);
    const keyFile = join(rig.place.data, 'encryption.key');
    const encryptionKey = Buffer.from(files.get(keyFile)!.toString(), 'base64');
    expect(encryptionKey).toHaveLength(32);
    files.delete(keyFile);
    files.set('the log', Buffer.from(service.stderr));
    files.set('the answers', Buffer.concat(rig.answers));
    expectClean(files, { ...rig.secrets, encryptionKey });
  });
});
