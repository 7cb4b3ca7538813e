/**
 * Calls of functions (contract, sections 1 to 3): parameters are a JSON object, the answer is the envelope,
 * and the delivery is byte for byte what the caller received.
 */
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAnswer, type RawAnswer } from '../support/caller.ts';
import { until } from '../support/waiting.ts';
import { openRig, type Rig } from './rig.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };

let rig: Rig;

beforeAll(async () => {
  rig = await openRig();
});
afterAll(() => rig.stop());

interface Answering {
  readonly status?: number;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Buffer;
}

function answering({ status = 200, headers = JSON_TYPE, body = '' }: Answering): string {
  return rig.app.play((req, res) => {
    req.resume();
    res.writeHead(status, headers).end(body);
  });
}

const post = (path: string, body?: string, hook = true): Promise<RawAnswer> =>
  rig.call({ app: 'cortex', path, method: 'POST', hook, ...(body !== undefined && { body }) });

const envelopeOf = (answer: RawAnswer): Record<string, unknown> => JSON.parse(answer.body.toString());

/** Calls with a webhook and holds that caller and receiver got the same bytes. */
async function called(app: Answering): Promise<{ answer: RawAnswer; envelope: Record<string, unknown> }> {
  const answer = await post(answering(app));
  const { body, delivery } = await rig.delivered(answer.header('x-request-id'));
  expect(answer.header('content-type')).toBe('application/json');
  expect(body.equals(answer.body)).toBe(true);
  expect(delivery.statusCode).toBe(answer.status);
  return { answer, envelope: envelopeOf(answer) };
}

describe('the envelope', () => {
  it('has its fields in this order, and nothing else', async () => {
    const { answer } = await called({ body: '{"x": 1}' });
    const id = answer.header('x-request-id');
    expect(answer.body.toString()).toMatch(
      new RegExp(
        `^\\{"run_id":"${id}","project_id":"p-test","app":"cortex","status_code":200,"result":\\{"x": 1\\},` +
          '"run_time_ms":[0-9.]+,"timestamp":"\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z"\\}$',
      ),
    );
    expect(answer.header('content-length')).toBe(String(answer.body.length));
  });

  it('tells when the answer was complete, and how long the run took', async () => {
    const before = Date.now();
    const { envelope } = await called({ body: '1' });
    const at = Date.parse(String(envelope['timestamp']));
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now());
    expect(envelope['run_time_ms']).toBeGreaterThan(0);
    expect(envelope['run_time_ms']).toBeLessThan(5_000);
  });

  it.each([
    ['big numbers', '{"n":12345678901234567890123,"f":1.0,"e":1E400}'],
    ['the order of keys, and repeated ones', '{"b":1,"a":2,"b":3,"1":4,"0":5}'],
    ['white space', ' \r\n\t{ "a" : [ 1 , 2 ] }\n'],
    ['escapes', '"\\u00e9\\/\\ud83d\\ude00é😀"'],
    ['an array', '[1,null,true]'],
    ['a string', '"x"'],
    ['null', 'null'],
  ])('has JSON in it as it came: %s', async (_what, body) => {
    const { answer } = await called({ body });
    expect(answer.body.toString()).toContain(`"result":${body},"run_time_ms"`);
  });

  it('is the same with and without a webhook, but for ids and times', async () => {
    const path = answering({ status: 201, headers: { ...JSON_TYPE, 'X-A': ['1', '2'] }, body: '{"a":1}' });
    const [plain, hooked] = [await post(path, undefined, false), await post(path)];
    const shown = ({ status, headers, body }: RawAnswer): unknown => [
      status,
      headers.map(([name, value]) => [name, /^(x-request-id|date|content-length)$/i.test(name) ? '' : value]),
      body.toString().replace(/"(run_id|run_time_ms|timestamp)":("[^"]*"|[\d.]+)/g, '$1'),
    ];
    expect(shown(hooked)).toEqual(shown(plain));
  });

  it('keeps the headers of the app, but for those that speak of its own bytes', async () => {
    const { answer } = await called({
      headers: {
        ...JSON_TYPE,
        'Set-Cookie': ['a=1', 'b=2'],
        ETag: '"x"',
        'Content-MD5': 'x',
        'Accept-Ranges': 'bytes',
        'Last-Modified': 'Thu, 01 Jan 1970 00:00:00 GMT',
        'X-Kept': 'yes',
      },
      body: '1',
    });
    expect(answer.headers.filter(([name]) => name === 'Set-Cookie')).toHaveLength(2);
    expect(answer.header('x-kept')).toBe('yes');
    const gone = ['etag', 'content-md5', 'accept-ranges', 'last-modified'];
    expect(gone.filter(name => answer.header(name))).toEqual([]);
  });
});

describe('an answer that is not JSON', () => {
  it.each<[what: string, app: Answering, fields: Record<string, unknown>]>([
    [
      'text',
      { headers: { 'Content-Type': 'text/plain' }, body: 'hé "x"\n' },
      { content_type: 'text/plain', result: 'hé "x"\n' },
    ],
    [
      'bytes',
      { headers: { 'Content-Type': 'image/png' }, body: Buffer.from([137, 0, 255]) },
      { content_type: 'image/png', result_encoding: 'base64', result: 'iQD/' },
    ],
    ['nothing', { headers: {}, body: '' }, { result: null }],
    ['nothing (204)', { status: 204, headers: {} }, { result: null, status_code: 200 }],
    ['text without a type', { headers: {}, body: 'plain' }, { result: 'plain' }],
    ['JSON without a type', { headers: {}, body: '{"a":1}' }, { result: { a: 1 } }],
    ['JSON that is none', { body: '{"a":' }, { content_type: 'application/json', result: '{"a":' }],
  ])('is described: %s', async (_what, app, fields) => {
    const { envelope } = await called(app);
    const { run_id: _r, project_id: _p, app: _a, run_time_ms: _t, timestamp: _s, ...rest } = envelope;
    expect(rest).toEqual({ status_code: 200, ...fields });
  });
});

describe('status_code', () => {
  it.each([
    ['{"status_code":201}', 201],
    ['{"a":{"b":[1]},"status_code":404,"z":1}', 404],
    ['{"status_code": 599 }', 599],
    ['{"status_code":200}', 200],
    ['{"status_code":199}', 202],
    ['{"status_code":600}', 202],
    ['{"status_code":"404"}', 202],
    ['{"status_code":404.0}', 202],
    ['{"status_code":4.04e2}', 202],
    ['{"status_code":-404}', 202],
    ['{"a":{"status_code":404}}', 202],
    ['[{"status_code":404}]', 202],
    ['{"Status_Code":404}', 202],
    ['{"x_status_code":404}', 202],
  ])('in %s makes the status %i', async (body, status) => {
    const { answer, envelope } = await called({ status: 202, body });
    expect([answer.status, envelope['status_code']]).toEqual([status, status]);
  });

  it('counts in the first 256 KiB of an object, and not beyond', async () => {
    const filler = 'x'.repeat(200_000);
    const near = await called({ body: `{"a":"${filler}","status_code":418,"b":"${filler}"}` });
    expect([near.answer.status, near.envelope['status_code']]).toEqual([418, 418]);
    const far = await called({ body: `{"a":"${filler}","b":"${filler}","status_code":418}` });
    expect([far.answer.status, far.envelope['status_code']]).toEqual([200, 200]);
  });

  it.each([204, 304])('%i is an answer without a body, and a delivery with one', async status => {
    const answer = await post(answering({ body: `{"status_code":${status}}` }));
    expect([answer.status, answer.body.length]).toEqual([status, 0]);
    const { json } = await rig.delivered(answer.header('x-request-id'));
    expect(json).toMatchObject({ status_code: status, result: { status_code: status } });
  });
});

describe('a function that fails', () => {
  it('is told as error in place of result', async () => {
    const error = { type: 'ValueError', message: 'no "x"' };
    const { answer, envelope } = await called({ status: 500, body: JSON.stringify({ error }) });
    expect(answer.status).toBe(500);
    expect(envelope).toMatchObject({ status_code: 500, error });
    expect(envelope).not.toHaveProperty('result');
  });

  it.each([
    [500, '{"error":"text"}'],
    [500, '{"error":{"type":"x"}}'],
    [503, '[1]'],
    [200, '{"error":{"type":"x","message":"y"}}'],
  ])('with %i and %s is a result like any other', async (status, body) => {
    const { envelope } = await called({ status, body });
    expect(envelope).toMatchObject({ status_code: status, result: JSON.parse(body) });
  });
});

describe('a call', () => {
  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('by %s is refused with 405', async method => {
    const answer = await rig.call({ app: 'cortex', path: 'run', method, hook: true });
    expect([answer.status, answer.header('allow')]).toEqual([405, 'POST']);
  });

  it.each(['', 'run/', 'run/more', '_run', '-run', 'r%75n', 'a'.repeat(64)])(
    'of %j, which names no function, is a 404',
    async path => {
      const answer = await rig.call({ app: 'cortex', path, method: 'POST' });
      expect([answer.status, envelopeOf(answer)['code']]).toEqual([404, 'not_found']);
    },
  );

  it('reaches the app as POST /<function>, with the query', async () => {
    const path = rig.app.play(async (req, res) => {
      res.end(JSON.stringify([req.method, req.url, await text(req)]));
    });
    const answer = await post(`${path}?a=1`, '{"x":1}');
    expect(envelopeOf(answer)['result']).toEqual(['POST', `/${path}?a=1`, '{"x":1}']);
  });

  it.each([
    ['no body', undefined, '{}'],
    ['an object', ' { "a" : 12345678901234567890 } ', ' { "a" : 12345678901234567890 } '],
  ])('gives the function its parameters as they came: %s', async (_what, body, seen) => {
    const path = rig.app.play(async (req, res) => res.end(JSON.stringify(await text(req))));
    expect(envelopeOf(await post(path, body))['result']).toBe(seen);
  });

  it('in chunks without a byte has no parameters', async () => {
    const path = rig.app.play(async (req, res) => res.end(JSON.stringify(await text(req))));
    const caller = await rig.converse();
    const headers = ['Transfer-Encoding: chunked', 'Connection: close'];
    caller.send(rig.head({ app: 'cortex', path, method: 'POST', headers }));
    caller.send('0\r\n\r\n');
    await caller.end();
    expect(envelopeOf(parseAnswer(caller.bytes))['result']).toBe('{}');
  });
});

describe('parameters that are no JSON object', () => {
  const BAD = [
    '[]',
    '1',
    'null',
    '"x"',
    '{',
    '{"a":1}}',
    '{"a":1} x',
    "{'a':1}",
    '{"a":01}',
    ' ',
    '{"a":"\n"}',
  ];

  it.each(BAD)('are refused before the function is called: %j', async body => {
    let called = false;
    const path = rig.app.play((_req, res) => {
      called = true;
      res.end('1');
    });
    const answer = await post(path, body);
    expect([answer.status, envelopeOf(answer)['code']]).toEqual([400, 'invalid_parameters']);
    expect(called).toBe(false);
    expect(rig.deliveries.accepted).not.toContain(answer.header('x-request-id'));
  });

  it.each([
    ['that end too early', '{"a":[', ''],
    ['that turn bad later', '{"a":"', '" x}'],
    ['that go on after their end', '{"a":"', '"} {}'],
  ])('never reach the function whole when they are streamed: those %s', async (_what, start, end) => {
    const size = 200_000;
    let seen = '';
    let whole = false;
    const path = rig.app.play((req, res) => {
      req.setEncoding('latin1').on('data', chunk => (seen += chunk));
      req.on('end', () => {
        whole = req.complete;
        res.end('1');
      });
      req.on('error', () => {});
    });
    const filler = start.endsWith('[') ? '1,'.repeat(size / 2) : 'x'.repeat(size);
    const body = `${start}${filler}`;
    const caller = await rig.converse();
    const headers = ['Transfer-Encoding: chunked'];
    caller.send(rig.head({ app: 'cortex', path, method: 'POST', hook: true, headers }));
    caller.send(`${body.length.toString(16)}\r\n${body}\r\n`);
    await until(() => seen.length === body.length);
    caller.send(end === '' ? '0\r\n\r\n' : `${end.length.toString(16)}\r\n${end}\r\n0\r\n\r\n`);
    await caller.until('"invalid_parameters"');
    expect(parseAnswer(caller.bytes).status).toBe(400);
    expect(whole).toBe(false);
    expect(rig.deliveries.accepted).not.toContain(parseAnswer(caller.bytes).header('x-request-id'));
    caller.close();
  });

  it.each(['[', '{"a" 1', '{}x'])('are refused when they come at once but are long: %s…', async start => {
    const answer = await post(answering({ body: '1' }), `${start}${' '.repeat(300_000)}`);
    expect([answer.status, envelopeOf(answer)['code']]).toEqual([400, 'invalid_parameters']);
  });
});

describe('a large answer', () => {
  it('streams while the function still writes it', async () => {
    const { promise, resolve } = Promise.withResolvers<ServerResponse>();
    const path = rig.app.play((req, res) => {
      req.resume();
      resolve(res);
    });
    const caller = await rig.converse();
    caller.send(
      rig.head({ app: 'cortex', path, method: 'POST', hook: true, headers: ['Connection: close'] }),
    );
    const res = await promise;
    res.writeHead(200, JSON_TYPE).write('{"a":"');
    for (let i = 1; i <= 4; i++) {
      res.write(`${'x'.repeat(400_000)}mark${i}`);
      await caller.until(`mark${i}`);
    }
    res.end('","n":12345678901234567890}');
    await caller.end();
    const answer = parseAnswer(caller.bytes);
    const { body } = await rig.delivered(answer.header('x-request-id'));
    expect(body.equals(answer.body)).toBe(true);
    expect(answer.body.toString()).toContain('mark4","n":12345678901234567890},"run_time_ms":');
  });

  it.each([
    ['text', { 'Content-Type': 'text/plain' }, 'é"'.repeat(400_000)],
    ['bytes', { 'Content-Type': 'application/x' }, 'xyz!'.repeat(400_000)],
  ])('of %s is streamed in its encoding', async (_what, headers, body) => {
    const { envelope } = await called({ headers, body });
    const result = String(envelope['result']);
    expect(envelope['result_encoding'] === 'base64' ? Buffer.from(result, 'base64').toString() : result).toBe(
      body,
    );
  });

  it('that is no JSON after all is cut off, and delivered as an error', async () => {
    const caller = await rig.converse();
    const path = answering({ body: `["${'x'.repeat(500_000)}" oops]` });
    caller.send(rig.head({ app: 'cortex', path, method: 'POST', hook: true }));
    const got = await caller.end();
    expect(got).not.toMatch(/\r\n0\r\n\r\n$/);
    const { json } = await rig.delivered(/X-Request-Id: (\S+)/.exec(got)?.[1]);
    expect(json).toMatchObject({ status_code: 200, error: { type: 'app_bad_answer' } });
  });

  it('that is no JSON, known before anything was sent, is passed on as text', async () => {
    const body = `nope ${'x'.repeat(500_000)}`;
    const { envelope } = await called({ body });
    expect(envelope).toMatchObject({ content_type: 'application/json', result: body });
  });

  it('beyond maxBody reaches the caller whole, and the receiver as a note', async () => {
    const size = 17 * 1024 * 1024;
    const answer = await post(answering({ body: `"${'x'.repeat(size)}"` }));
    expect(String(envelopeOf(answer)['result'])).toHaveLength(size);
    const { json } = await rig.delivered(answer.header('x-request-id'));
    expect(json['result_omitted']).toEqual({ bytes: size + 2, limit: 16 * 1024 * 1024 });
    expect(json).not.toHaveProperty('result');
  });
});

describe('a function that encodes its answer, though asked not to,', () => {
  it.each([100, 2_000_000])('has it decoded in the envelope (%i bytes)', async size => {
    const result = 'x'.repeat(size);
    const { answer, envelope } = await called({
      headers: { ...JSON_TYPE, 'Content-Encoding': 'gzip' },
      body: gzipSync(JSON.stringify(result)),
    });
    expect(answer.header('content-encoding')).toBeUndefined();
    expect(envelope['result']).toBe(result);
  });

  it.each([
    ['damaged', 'gzip', gzipSync('{"a":1}').subarray(0, 20)],
    ['unknown', 'rot13', Buffer.from('{"n":1}')],
  ])('has a %s one answered for with 502, and delivered as an error', async (_what, coding, body) => {
    const answer = await post(answering({ headers: { ...JSON_TYPE, 'Content-Encoding': coding }, body }));
    expect([answer.status, envelopeOf(answer)['code']]).toEqual([502, 'app_bad_answer']);
    const { json } = await rig.delivered(answer.header('x-request-id'));
    expect(json).toMatchObject({ status_code: 502, error: { type: 'app_bad_answer' } });
  });
});

describe('a function that yields', () => {
  const EVENTS = { 'Content-Type': 'text/event-stream' };

  async function streamed(body: string): Promise<{ answer: RawAnswer; json: Record<string, unknown> }> {
    const answer = await post(answering({ headers: EVENTS, body }));
    const { json } = await rig.delivered(answer.header('x-request-id'));
    return { answer, json };
  }

  it('is streamed to the caller as it is, and delivered as the array of its values', async () => {
    const body = 'data: {"a":1}\n\ndata: 2.50\n\n: note\n\nevent: x\ndata: two\ndata: lines\n\n';
    const { answer, json } = await streamed(body);
    expect(answer.header('content-type')).toBe('text/event-stream');
    expect(answer.body.toString()).toBe(body);
    expect(json).toMatchObject({ status_code: 200, result: [{ a: 1 }, 2.5, 'two\nlines'] });
    expect(json).not.toHaveProperty('content_type');
  });

  it('keeps big numbers in the array', async () => {
    const answer = await post(answering({ headers: EVENTS, body: 'data: 12345678901234567890\n\n' }));
    const { body } = await rig.delivered(answer.header('x-request-id'));
    expect(body.toString()).toContain('"result":[12345678901234567890],');
  });

  it.each([
    ['nothing at all', ''],
    ['nothing but a comment', ': hello\n\n'],
  ])('and yields %s has an empty array', async (_what, body) => {
    expect((await streamed(body)).json['result']).toEqual([]);
  });

  it('and then throws is delivered as an error', async () => {
    const error = { type: 'Error', message: 'boom' };
    const { json } = await streamed(`data: 1\n\nevent: error\ndata: ${JSON.stringify(error)}\n\n`);
    expect(json).toMatchObject({ status_code: 200, error });
    expect(json).not.toHaveProperty('result');
  });

  it('more than memory holds is delivered whole', async () => {
    const values = Array.from({ length: 3_000 }, (_, i) => `${i}:${'x'.repeat(100)}`);
    const { json } = await streamed(values.map(value => `data: ${JSON.stringify(value)}\n\n`).join(''));
    expect(json['result']).toEqual(values);
  });
});
