/**
 * The promise to the caller: `webhookEndpoint` changes nothing in what it gets, and the delivery carries the
 * same answer. Held against generated answers of both runtimes, byte for byte.
 */
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Header,
  isBodiless,
  perform,
  type Plan,
  planOf,
  type Recipe,
  recipes,
  WHOLE_REASONS,
} from './support/answers.ts';
import { openRawApp, type TestApp } from './support/app.ts';
import { callRaw, type RawAnswer } from './support/caller.ts';
import { type Inbox, openInbox } from './support/inbox.ts';
import { startService, type TestService } from './support/service.ts';

const MIB = 1024 * 1024;
const MAX_BODY = 16 * MIB;
const RUNS = 100;

let inbox: Inbox;
let app: TestApp;
let service: TestService;
/** What the app answers with at present. */
let current: Plan;

beforeAll(async () => {
  inbox = await openInbox();
  app = await openRawApp(answerWithPlan);
  service = await startService({
    apps: { custom: { runtime: 'custom', url: app.url }, cortex: { runtime: 'cortex', url: app.url } },
    webhooks: { maxBody: MAX_BODY, commitWait: 10_000 },
  });
});

afterAll(async () => {
  await service.stop();
  await app.close();
  await inbox.close();
});

function answerWithPlan(socket: Socket): void {
  let request = '';
  const read = (chunk: Buffer): void => {
    request += chunk.toString('latin1');
    if (!isWhole(request)) return;
    socket.off('data', read).resume();
    void perform(current, socket);
  };
  socket.on('data', read);
}

function isWhole(request: string): boolean {
  const end = request.indexOf('\r\n\r\n');
  const length = Number(/content-length: (\d+)/i.exec(request)?.[1] ?? 0);
  return end >= 0 && request.length >= end + 4 + length;
}

interface Both {
  readonly plain: RawAnswer;
  readonly hooked: RawAnswer;
  /** The body of the delivery. */
  readonly delivered: Buffer;
}

/** The same call without and with a webhook. */
async function callBoth(name: 'custom' | 'cortex', plan: Plan): Promise<Both> {
  current = plan;
  const { method, version } = plan;
  const call = (target?: string): Promise<RawAnswer> =>
    callRaw({
      port: service.port,
      method,
      version,
      path: service.path(`${name}/run`, target),
      headers: [`Authorization: Bearer ${service.token}`],
      ...(method === 'POST' && { body: '{"n":1}' }),
    });
  const plain = await call();
  const hooked = await call(inbox.url);
  const { body } = await inbox.of(hooked.header('x-request-id')!);
  return { plain, hooked, delivered: body };
}

/** A view of both sides: what there is, and what there should be. */
interface Comparison {
  readonly found: unknown;
  readonly due: unknown;
}

/** Bytes that are too many to be shown. */
const digest = (bytes: Uint8Array): string =>
  `${bytes.length} bytes, SHA-256 ${createHash('sha256').update(bytes).digest('hex')}`;

/** The head but for the two headers that name a moment and a run. An app's own date stays. */
function maskedHead({ head }: RawAnswer): string {
  return head
    .replace(/^X-Request-Id: [0-9a-f-]{36}\r$/m, 'X-Request-Id: *\r')
    .replace(/^Date: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r$/m, 'Date: *\r');
}

function seenBy(answer: RawAnswer): unknown {
  return { head: maskedHead(answer), body: digest(answer.body), trailers: answer.trailerSection };
}

const NOT_PASSED = new Set(['keep-alive', 'proxy-authenticate', 'te', 'x-hop', 'x-request-id']);

/** What the app says end to end, in the order in which it says it. Only chunked answers announce trailers. */
function endToEnd({ headers, contentType, contentEncoding }: Plan, chunked: boolean): Header[] {
  const all: Header[] = [...headers];
  if (contentType !== undefined) all.push(['Content-Type', contentType]);
  if (contentEncoding !== undefined) all.push(['Content-Encoding', contentEncoding]);
  return all.filter(([name]) => !NOT_PASSED.has(name.toLowerCase()) && (chunked || name !== 'Trailer'));
}

const OWN = new Set(['Connection', 'Date', 'X-Request-Id', 'Transfer-Encoding', 'Content-Length']);

/** The app's answer, untouched. */
function compareToPlan(plan: Plan, answer: RawAnswer): Comparison {
  const chunked = answer.header('transfer-encoding') === 'chunked';
  const trailing = plan.version === '1.1' && plan.framing === 'chunked' && !isBodiless(plan);
  const reason = answer.statusLine.slice('HTTP/1.1 200 '.length);
  return {
    found: {
      status: answer.status,
      reason,
      headers: answer.headers.filter(([name]) => !OWN.has(name)),
      body: digest(answer.body),
      trailers: answer.trailers,
    },
    due: {
      status: plan.status,
      reason: WHOLE_REASONS.includes(plan.reason) ? plan.reason : reason,
      headers: endToEnd(plan, chunked),
      body: digest(isBodiless(plan) ? Buffer.alloc(0) : plan.body),
      trailers: trailing ? plan.trailers : [],
    },
  };
}

/** The delivery says what the app said, decoded. */
function compareDelivery(plan: Plan, { hooked, delivered }: Both): Comparison {
  const envelope = JSON.parse(delivered.toString()) as Record<string, unknown>;
  const due = { run_id: hooked.header('x-request-id'), status_code: plan.status, ...resultDue(plan) };
  const { run_id, status_code, content_type, result_encoding, result_omitted } = envelope;
  return {
    found: {
      run_id,
      status_code,
      content_type,
      result_encoding,
      result_omitted,
      result: resultIn(delivered),
    },
    due: { content_type: undefined, result_encoding: undefined, result_omitted: undefined, ...due },
  };
}

function resultDue(plan: Plan): Record<string, unknown> {
  const { content, contentType, contentEncoding, body } = plan;
  if (isBodiless(plan) || content.kind === 'nothing') return { result: 'null' };
  const { kind, bytes } = content;
  const description = {
    ...(kind !== 'json' && { content_type: contentType }),
    ...(kind === 'bytes' && { result_encoding: 'base64' }),
  };
  if (bytes.length <= MAX_BODY) return { ...description, result: digest(bytes) };
  // What is too long encoded is not decoded to find out how long it would be.
  const size = contentEncoding !== undefined && body.length > MAX_BODY ? body.length : bytes.length;
  return {
    ...description,
    result_encoding: undefined,
    result: undefined,
    result_omitted: { bytes: size, limit: MAX_BODY },
  };
}

/** JSON as it stands in the delivery, anything else as what it stands for. */
function resultIn(delivered: Buffer): string | undefined {
  const start = delivered.indexOf(',"result":');
  if (start < 0) return undefined;
  const raw = delivered.subarray(start + ',"result":'.length, delivered.lastIndexOf(',"run_time_ms":'));
  if (raw.toString() === 'null') return 'null';
  if (!raw.toString().startsWith('"')) return digest(raw);
  const encoding = delivered.includes('"result_encoding":"base64"') ? 'base64' : 'utf8';
  return digest(Buffer.from(JSON.parse(raw.toString()) as string, encoding));
}

const TYPICAL = {
  method: 'GET',
  version: '1.1',
  status: 200,
  reason: 'OK',
  headers: [],
  interim: [],
  seed: 1,
  framing: 'chunked',
  trailers: [],
  encoding: undefined,
  cuts: [],
} as const;

const CUTS = [0.1, 0.5, 0.50001, 0.9].map(at => ({ at, pause: 'turn' as const }));

/** Beyond what memory holds of an answer, and beyond what a delivery takes. */
const LARGE: ReadonlyArray<readonly [string, Recipe]> = [
  ['JSON of 5 MiB', { ...TYPICAL, substance: 'json', size: 5 * MIB, framing: 'length' }],
  ['bytes of 11 MiB', { ...TYPICAL, substance: 'bytes', size: 11 * MIB, framing: 'close', cuts: CUTS }],
  ['text of 4 MiB', { ...TYPICAL, substance: 'text', size: 4 * MIB, cuts: CUTS }],
  ['5 MiB in zstd', { ...TYPICAL, substance: 'json', size: 5 * MIB, encoding: 'zstd', cuts: CUTS }],
  ['5 MiB in gzip', { ...TYPICAL, substance: 'bytes', size: 5 * MIB, encoding: 'gzip' }],
  ['20 MB of JSON', { ...TYPICAL, substance: 'json', size: 20_000_000, cuts: CUTS }],
  ['20 MB of bytes', { ...TYPICAL, substance: 'bytes', size: 20_000_000, framing: 'length' }],
  ['20 MB in a little gzip', { ...TYPICAL, substance: 'text', size: 20_000_000, encoding: 'gzip' }],
];

describe('a custom app', { timeout: 120_000 }, () => {
  const compare = async (recipe: Recipe): Promise<Comparison> => {
    const plan = planOf(recipe);
    const both = await callBoth('custom', plan);
    const passed = compareToPlan(plan, both.hooked);
    const delivery = compareDelivery(plan, both);
    return {
      found: { caller: seenBy(both.hooked), passed: passed.found, delivery: delivery.found },
      due: { caller: seenBy(both.plain), passed: passed.due, delivery: delivery.due },
    };
  };

  it('answers the same with a webhook, whatever it answers', async () => {
    const property = fc.asyncProperty(recipes, async recipe => {
      const { found, due } = await compare(recipe);
      expect(found).toEqual(due);
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  it.each(LARGE)('answers the same with %s', async (_, recipe) => {
    const { found, due } = await compare(recipe);
    expect(found).toEqual(due);
  });
});

describe('a cortex app', { timeout: 120_000 }, () => {
  /** An answer but for what differs from run to run, and so, by a digit, in length. */
  const seen = (answer: RawAnswer): unknown => ({
    head: maskedHead(answer).replace(/^Content-Length: \d+\r$/m, 'Content-Length: *\r'),
    body: digest(maskedBody(answer.body)),
    trailers: answer.trailerSection,
  });
  const maskedBody = (body: Buffer): Buffer =>
    Buffer.from(
      body
        .toString('latin1')
        .replace(/^\{"run_id":"[0-9a-f-]{36}"/, '{"run_id":*')
        .replace(/"run_time_ms":[\d.]+,"timestamp":"[\dTZ:.-]+"\}$/, '"run_time_ms":*,"timestamp":*}'),
      'latin1',
    );

  const compare = async (recipe: Recipe): Promise<Comparison> => {
    const plan = planOf({ ...recipe, method: 'POST' });
    const { plain, hooked, delivered } = await callBoth('cortex', plan);
    const { status_code } = JSON.parse(delivered.toString()) as Record<string, unknown>;
    // Events reach the caller as they are, and the receiver as a list.
    const streamed = plan.contentType === 'text/event-stream';
    return {
      found: { caller: seen(hooked), status_code, delivery: streamed ? undefined : digest(delivered) },
      due: {
        caller: seen(plain),
        status_code: hooked.status,
        delivery: streamed ? undefined : digest(hooked.body),
      },
    };
  };

  it('answers the same with a webhook, and its delivery is the answer', async () => {
    const property = fc.asyncProperty(recipes, async recipe => {
      const { found, due } = await compare(recipe);
      expect(found).toEqual(due);
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  it.each(LARGE.slice(0, 5))('answers the same with %s', async (_, recipe) => {
    const { found, due } = await compare(recipe);
    expect(found).toEqual(due);
  });
});
