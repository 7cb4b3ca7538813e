/**
 * Keeps docs/contract.md true: its tables are those of the code, and its examples are what a running service
 * answers and delivers.
 */
import { BlockList, isIPv6 } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ATTEMPT_ERRORS, type Verdict } from '../../src/delivery/outcome.ts';
import { createTargetPolicy } from '../../src/delivery/target.ts';
import { PROBLEMS } from '../../src/errors.ts';
import { openApp, type TestApp } from '../support/app.ts';
import { callRaw, type RawAnswer } from '../support/caller.ts';
import { type Inbox, openInbox, type Received } from '../support/inbox.ts';
import { startService, type TestService } from '../support/service.ts';
import { codeBlocksOf, namesIn, readDocument, sectionOf, tableOf } from './markdown.ts';
import { outcomeRows } from './outcomes.ts';

const text = readDocument('docs/contract.md');

it('lists every problem with its status, and no other', () => {
  const told = tableOf(sectionOf(text, 'Errors'), '`code`').map(([code, status]) => [code, Number(status)]);
  const real = Object.entries(PROBLEMS).map(([code, { status }]) => [`\`${code}\``, status]);
  expect(told).toEqual(real);
});

it('tells which problems are delivered, and no others', () => {
  const [told = ''] = /^\*\*Which of them are delivered\.\*\*.*?: (.*?)\./m.exec(text)?.slice(1) ?? [];
  const real = Object.entries(PROBLEMS).filter(([, kind]) => 'ofApp' in kind);
  expect(namesIn(told)).toEqual(real.map(([code]) => code));
});

it('lists every error of an attempt, and no other', () => {
  const told = tableOf(sectionOf(text, 'Outcomes, retries and states'), 'code').map(([code]) => code);
  expect(told).toEqual(ATTEMPT_ERRORS.map(code => `\`${code}\``));
});

it('tells the outcomes that the code decides', () => {
  const words: Record<Verdict, string> = {
    delivered: 'delivered',
    retry: 'tried again',
    rejected: 'failed: `rejected`',
    blocked: 'failed: `blocked`',
  };
  for (const { answer, told, verdicts } of outcomeRows(text)) {
    expect([answer, verdicts.map(verdict => words[verdict])]).toEqual([answer, [told]]);
  }
});

describe('targets that are refused', () => {
  const RANGE = /^([0-9a-f:.]+)(?:\/(\d+))?$/;
  const policy = createTargetPolicy({ allow: [], listeners: () => [], localAddresses: () => [] });
  const told = namesIn(sectionOf(text, 'Targets that are refused')).filter(name => RANGE.test(name));
  const refused = told.filter(range => range !== '2000::/3');
  const addressOf = (range: string): string => RANGE.exec(range)![1]!;

  it.each(refused)('%s is refused', range => {
    expect(policy.judge(addressOf(range), 443, 'example.com')).toMatchObject({ allowed: false });
  });

  it('there are no others', () => {
    const list = new BlockList();
    for (const range of refused) {
      const [, address, prefix] = RANGE.exec(range)!;
      const family = isIPv6(address!) ? 'ipv6' : 'ipv4';
      list.addSubnet(address!, Number(prefix ?? (family === 'ipv6' ? 128 : 32)), family);
    }
    const real = [...readDocument('src/delivery/target.ts').matchAll(/'([0-9a-f:.]+\/\d+)'/g)].map(
      ([, range]) => range!,
    );
    const untold = real.filter(range => {
      const address = addressOf(range);
      return !list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
    });
    expect(untold).toEqual(['2000::/3']);
  });
});

describe('examples', () => {
  const examples = new Map(
    codeBlocksOf(text)
      .filter(({ label }) => label.startsWith('example='))
      .map(({ label, text: json }) => [label.slice('example='.length), JSON.parse(json) as object]),
  );
  let app: TestApp;
  let inbox: Inbox;
  let service: TestService;

  /** What the app answers at each path. */
  const ANSWERS: Record<
    string,
    { type?: string; encoding?: string; status?: number; body?: string | Buffer }
  > = {
    '/json': { type: 'application/json', body: '{"label":"cat","score":0.97}' },
    '/text': { type: 'text/plain; charset=utf-8', body: 'three cats\n' },
    '/bytes': { type: 'image/png', body: Buffer.from('89504e47', 'hex') },
    '/empty': { status: 204 },
    '/omitted': { type: 'image/png', body: Buffer.alloc(300 * 1024) },
    '/encoded': { type: 'text/plain', encoding: 'compress', body: 'abc' },
  };

  beforeAll(async () => {
    inbox = await openInbox();
    app = await openApp((req, res) => {
      const { type, encoding, status = 200, body } = ANSWERS[req.url!]!;
      if (type !== undefined) res.setHeader('Content-Type', type);
      if (encoding !== undefined) res.setHeader('Content-Encoding', encoding);
      res.writeHead(status).end(body);
    });
    service = await startService({
      apps: {
        model: { runtime: 'cortex', url: app.url },
        web: { runtime: 'custom', url: app.url },
        gone: { runtime: 'custom', url: 'http://127.0.0.1:1' },
      },
      project: { standardWebhooks: true },
      webhooks: { maxBody: 200 * 1024 },
    });
  });

  afterAll(async () => {
    await service.stop();
    await app.close();
    await inbox.close();
  });

  async function call(path: string, target: string, headers: readonly string[] = []): Promise<RawAnswer> {
    return callRaw({
      port: service.port,
      method: 'POST',
      path: service.path(path, target),
      headers: [`Authorization: Bearer ${service.token}`, ...headers],
    });
  }

  async function delivered(path: string, target = inbox.url, headers?: readonly string[]): Promise<Received> {
    const answer = await call(path, target, headers);
    return inbox.of(answer.header('x-request-id')!);
  }

  /** What differs from run to run; the order of the fields stays. */
  function settled(body: object): string {
    const fixed = { run_id: '', project_id: '', run_time_ms: 0, timestamp: '' };
    return JSON.stringify(body, (key, value) => (Object.hasOwn(fixed, key) ? typeof value : value));
  }

  it.each([
    ['json', 'model/json'],
    ['text', 'web/text'],
    ['bytes', 'web/bytes'],
    ['empty', 'web/empty'],
    ['error', 'gone/'],
    ['omitted', 'web/omitted'],
    ['encoded', 'web/encoded'],
  ])('%s', async (name, path) => {
    const { body } = await delivered(path);
    expect(settled(JSON.parse(body.toString()))).toBe(settled(examples.get(name)!));
    expect(Object.keys(JSON.parse(body.toString())).filter(field => !fields.has(field))).toEqual([]);
  });

  /** Those of the table of fields. */
  const fields = new Set(
    tableOf(sectionOf(text, 'The body of a delivery'), 'field').flatMap(([field]) => namesIn(field!)),
  );

  it('problem', async () => {
    const { body } = await call('web/text?webhookEndpoint=http%3A%2F%2Fexample.com', inbox.url);
    expect(settled(JSON.parse(body.toString()))).toBe(settled(examples.get('problem')!));
  });

  it('failure', async () => {
    const { body } = await call('gone/', inbox.url);
    expect(settled(JSON.parse(body.toString()))).toBe(settled(examples.get('failure')!));
  });

  it('every example is one of those above, and every field is in one', () => {
    expect([...examples.keys()].sort()).toEqual(
      ['bytes', 'empty', 'encoded', 'error', 'failure', 'json', 'omitted', 'problem', 'text'].sort(),
    );
    const shown = new Set([...examples.values()].flatMap(example => Object.keys(example)));
    expect([...fields].filter(field => !shown.has(field))).toEqual([]);
  });

  it('the headers of a delivery are those of the table', async () => {
    const target = inbox.url.replace('//', '//user:password@');
    const { headers } = await delivered('web/text', target, ['X-Webhook-Secret: s3cret']);
    const told = tableOf(sectionOf(text, 'The delivery request'), 'header').flatMap(([name]) =>
      namesIn(name!),
    );
    const ofTheConnection = new Set(['host', 'connection', 'content-length']);
    expect(
      Object.keys(headers)
        .filter(name => !ofTheConnection.has(name))
        .sort(),
    ).toEqual(told.map(name => name.toLowerCase()).sort());
  });
});
