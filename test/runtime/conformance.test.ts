/**
 * Functions of both languages through the whole service: one suite, run for each. Every row checks what the
 * caller gets and what is delivered.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { callRaw, type RawAnswer } from '../support/caller.ts';
import { converse, type Conversation } from '../support/conversation.ts';
import { type Inbox, openInbox, type Received } from '../support/inbox.ts';
import { startService, type TestProcess, type TestService } from '../support/service.ts';

const SOON = { timeout: 10_000, interval: 5 };

const nodeProcess = (folder: string): TestProcess => ({
  program: { kind: 'node', entry: join(import.meta.dirname, folder, 'main.ts') },
});
const pythonProcess = (folder: string): TestProcess => ({
  program: { kind: 'python', entry: join(import.meta.dirname, folder, 'main.py'), python: 'python3' },
});

interface Envelope {
  readonly run_id: string;
  readonly status_code: number;
  readonly result?: unknown;
  readonly error?: { readonly type: string; readonly message: string };
}

describe.each([
  ['TypeScript', nodeProcess],
  ['Python', pythonProcess],
])('a function in %s', (language, processIn) => {
  let service: TestService;
  let inbox: Inbox;
  beforeAll(async () => {
    inbox = await openInbox();
    service = await startService({
      apps: {
        app: { runtime: 'cortex', process: processIn('functions') },
        fragile: { runtime: 'cortex', process: processIn('hosted') },
      },
    });
  });
  afterAll(async () => {
    await service.stop();
    await inbox.close();
  });

  const headers = () => [`Authorization: Bearer ${service.token}`, 'Content-Type: application/json'];

  function call(path: string, body: string | Uint8Array, target?: string): Promise<RawAnswer> {
    return callRaw({
      port: service.port,
      method: 'POST',
      path: service.path(path, target),
      headers: headers(),
      body,
    });
  }

  /** The answer to a call with a webhook, and its delivery. */
  async function callAndDelivery(path: string, body: string | Uint8Array) {
    const answer = await call(path, body, inbox.url);
    const delivery = await inbox.of(answer.header('x-request-id')!);
    return { answer, delivery };
  }

  /** A call whose answer is not waited for. */
  async function begin(path: string, parameters: object, target?: string): Promise<Conversation> {
    const conversation = await converse(service.port);
    const body = JSON.stringify(parameters);
    const lines = [`POST ${service.path(path, target)} HTTP/1.1`, 'Host: test', ...headers()];
    conversation.send(`${lines.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    return conversation;
  }

  const envelopeIn = (bytes: Buffer): Envelope => JSON.parse(bytes.toString()) as Envelope;

  /** What was delivered is what the caller got, byte for byte. */
  function expectSame({ body }: RawAnswer, delivery: Received): Envelope {
    expect(delivery.body.equals(body)).toBe(true);
    return envelopeIn(body);
  }

  const appears = (file: string) => vi.waitUntil(() => existsSync(file), SOON);

  describe('answers in an envelope, which is delivered as it is', () => {
    const large = 'é'.repeat(2_500_000);
    const message = expect.any(String);
    it.each([
      ['a value', 'echo', { value: { b: [1, null], a: {} } }, 200, { result: { b: [1, null], a: {} } }],
      ['nothing', 'nothing', {}, 200, { result: null }],
      [
        'text beyond ASCII',
        'echo',
        { value: 'Grüße 𝄞 \u2028\u0000' },
        200,
        { result: 'Grüße 𝄞 \u2028\u0000' },
      ],
      ['5 MB, both ways', 'echo', { value: large }, 200, { result: large }],
      ['its status_code', 'teapot', {}, 418, { result: { status_code: 418, message: 'short and stout' } }],
      ['an error', 'deny', {}, 500, { error: { type: 'OutOfStock', message: 'no more pears' } }],
      ['no such function', 'absent', {}, 404, { error: { type: 'FunctionNotFound', message } }],
      [
        'a result that JSON cannot hold',
        'flawed',
        { kind: 'nan' },
        500,
        {
          error: {
            type: 'UnserializableResult',
            message: 'result.scores[2] is NaN, which JSON cannot hold',
          },
        },
      ],
      [
        'an error before the first value',
        'count',
        { to: 3, failAfter: 0 },
        500,
        { error: { type: 'OutOfStock', message: 'no more than 0' } },
      ],
    ])('%s', async (_, name, parameters, status, expected) => {
      const { answer, delivery } = await callAndDelivery(`app/${name}`, JSON.stringify(parameters));
      expect([answer.status, answer.header('content-type')]).toEqual([status, 'application/json']);
      const envelope = expectSame(answer, delivery);
      expect(envelope).toMatchObject({ status_code: status, ...expected });
      expect('result' in envelope).toBe('result' in expected);
      const plain = await call(`app/${name}`, JSON.stringify(parameters));
      expect([plain.status, envelopeIn(plain.body)]).toMatchObject([status, expected]);
    });

    it('bytes, as base64', async () => {
      const { answer, delivery } = await callAndDelivery('app/binary', '{}');
      expect(answer.status).toBe(200);
      expect(expectSame(answer, delivery)).toMatchObject({
        result: Buffer.from([0, 255, 10, 128]).toString('base64'),
        result_encoding: 'base64',
        content_type: 'application/octet-stream',
      });
    });

    // In TypeScript a parameter that is not given is undefined, and nobody's business but the function's.
    if (language === 'Python') {
      it('a missing parameter', async () => {
        const { answer, delivery } = await callAndDelivery('app/pair', '{"left":1}');
        expect(answer.status).toBe(400);
        const error = { type: 'InvalidParameters', message: expect.stringContaining("'right'") };
        expect(expectSame(answer, delivery)).toMatchObject({ status_code: 400, error });
      });
    }

    it('a slow one, when it is done', async () => {
      const folder = temporaryDirectory();
      const conversation = await begin('app/slow', { folder }, inbox.url);
      await appears(join(folder, 'started'));
      expect(conversation.text).toBe('');
      writeFileSync(join(folder, 'go'), '');
      const text = await conversation.until('"result":"done"');
      conversation.close();
      const delivery = await inbox.of(/"run_id":"([^"]+)"/.exec(text)![1]!);
      expect(text.endsWith(delivery.body.toString())).toBe(true);
    });
  });

  it.each(['{"value":', '[]', '7', 'null', '{"value":NaN}'])(
    'is not called with %s, and nothing is delivered',
    async body => {
      const answer = await call('app/echo', body, inbox.url);
      expect([answer.status, answer.header('content-type')]).toEqual([400, 'application/problem+json']);
      expect(envelopeIn(answer.body)).toMatchObject({ code: 'invalid_parameters' });
      await callAndDelivery('app/nothing', '{}');
      expect(inbox.received.map(({ runId }) => runId)).not.toContain(answer.header('x-request-id'));
    },
  );

  describe('streams', () => {
    it('its values as events, and they are delivered as an array', async () => {
      const { answer, delivery } = await callAndDelivery('app/count', '{"to":3}');
      expect([answer.status, answer.header('content-type')]).toEqual([200, 'text/event-stream']);
      expect(answer.body.toString()).toBe(
        'data: {"number":1}\n\ndata: {"number":2}\n\ndata: {"number":3}\n\n',
      );
      const result = [{ number: 1 }, { number: 2 }, { number: 3 }];
      expect(envelopeIn(delivery.body)).toMatchObject({ status_code: 200, result });
    });

    it('each value at once', async () => {
      const folder = temporaryDirectory();
      const conversation = await begin('app/gated', { folder }, inbox.url);
      await conversation.until('data: "first"');
      expect(conversation.text).not.toContain('second');
      writeFileSync(join(folder, 'go'), '');
      const text = await conversation.until('data: "second"');
      conversation.close();
      await inbox.of(/x-request-id: (\S+)/i.exec(text)![1]!); // or it would come in the midst of another test
    });

    it('an error in the midst as an event, and it is delivered', async () => {
      const { answer, delivery } = await callAndDelivery('app/count', '{"to":3,"failAfter":1}');
      const error = { type: 'OutOfStock', message: 'no more than 1' };
      expect(answer.body.toString()).toBe(
        `data: {"number":1}\n\nevent: error\ndata: ${JSON.stringify(error)}\n\n`,
      );
      expect(envelopeIn(delivery.body)).toMatchObject({ status_code: 200, error });
    });
  });

  describe('whose process ends', () => {
    const error = { type: 'app_crashed', message: 'The process of the app ended during the call' };

    it('is a 502 that says so, to the caller and to the receiver, and the next call works', async () => {
      const { answer, delivery } = await callAndDelivery('fragile/crash', '{}');
      expect([answer.status, answer.header('content-type')]).toEqual([502, 'application/problem+json']);
      expect(envelopeIn(answer.body)).toMatchObject({ code: 'app_crashed', error });
      const delivered = envelopeIn(delivery.body);
      expect(delivered).toMatchObject({ status_code: 502, error });
      expect(delivered).not.toHaveProperty('result');
      const { answer: next } = await callAndDelivery('fragile/pid', '{}');
      expect(next.status).toBe(200);
    });

    it('in the midst of a stream cuts the caller off, and the receiver is told', async () => {
      const conversation = await begin('fragile/crashMidway', {}, inbox.url);
      const text = await conversation.end();
      expect(text).toContain('data: "first"');
      expect(text.endsWith('0\r\n\r\n')).toBe(false);
      const runId = /x-request-id: (\S+)/i.exec(text)![1]!;
      const delivered = envelopeIn((await inbox.of(runId)).body);
      expect(delivered).toMatchObject({ status_code: 200, error });
      expect(delivered).not.toHaveProperty('result');
    });
  });

  describe('whose caller hangs up', () => {
    it('goes on with a webhook, and is delivered', async () => {
      const folder = temporaryDirectory();
      const before = inbox.received.length;
      const conversation = await begin('app/slow', { folder }, inbox.url);
      await appears(join(folder, 'started'));
      conversation.close();
      writeFileSync(join(folder, 'go'), '');
      const delivery = (await inbox.count(before + 1)).at(-1)!;
      expect(envelopeIn(delivery.body)).toMatchObject({ status_code: 200, result: 'done' });
    });

    it('goes on to stream with a webhook, and is delivered', async () => {
      const folder = temporaryDirectory();
      const conversation = await begin('app/gated', { folder }, inbox.url);
      const text = await conversation.until('data: "first"');
      conversation.close();
      writeFileSync(join(folder, 'go'), '');
      const delivery = await inbox.of(/x-request-id: (\S+)/i.exec(text)![1]!);
      expect(envelopeIn(delivery.body)).toMatchObject({ status_code: 200, result: ['first', 'second'] });
    });

    it.each(['endless', 'silent'])('is closed without one: %s', async name => {
      const folder = temporaryDirectory();
      const conversation = await begin(`app/${name}`, { folder });
      await conversation.until('data: ');
      expect(existsSync(join(folder, 'closed'))).toBe(false);
      conversation.close();
      await appears(join(folder, 'closed'));
    });

    if (language === 'TypeScript') {
      it('is told by its signal without one', async () => {
        const folder = temporaryDirectory();
        const conversation = await begin('app/watchful', { folder });
        await appears(join(folder, 'started'));
        expect(existsSync(join(folder, 'aborted'))).toBe(false);
        conversation.close();
        await appears(join(folder, 'aborted'));
      });
    }
  });
});
