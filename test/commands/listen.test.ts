import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { type RunOptions, type Running, start } from './run.ts';

const SECRET = 's3cret';
const BODY = '{"run_id":"r-1","result":12345678901234567890}';

interface Listening extends Running, AsyncDisposable {
  readonly address: string;
  post(options?: { body?: string; headers?: Record<string, string> }): Promise<Response>;
}

async function listening(argv: readonly string[], options?: RunOptions): Promise<Listening> {
  const running = start(['listen', '--port', '0', ...argv], options);
  const [, address] = await running.stderr.match(/listening on (\S+),/);
  return {
    ...running,
    address: address!,
    post: ({ body = BODY, headers = signed(body) } = {}) =>
      fetch(`${address}hook?x=1`, { method: 'POST', body, headers: { ...headers, connection: 'close' } }),
    async [Symbol.asyncDispose]() {
      running.stop();
      await running.exit;
    },
  };
}

function signed(body: string, id = 'r-1', attempt = 1): Record<string, string> {
  const digest = createHmac('sha256', SECRET).update(`${id}.1700000000.${body}`).digest('hex');
  return {
    'content-type': 'application/json',
    'x-request-id': id,
    'x-service-webhook-timestamp': '1700000000',
    'x-service-webhook-signature': `v1,${digest}`,
    'x-service-webhook-attempt': String(attempt),
  };
}

it('prints a delivery so that one can read it', async () => {
  await using listen = await listening(['--secret', SECRET]);
  expect((await listen.post()).status).toBe(200);
  await listen.stdout.match(/}\n$/);

  expect(listen.stdout.text.replace(/^[\d:.]{12}/, 'TIME')).toBe(
    [
      `TIME  r-1  attempt 1  signature ok  ${BODY.length} bytes  answered 200`,
      '    {',
      '      "run_id": "r-1",',
      '      "result": 12345678901234567890',
      '    }',
      '',
    ].join('\n'),
  );
});

it('prints a delivery as a line of JSON with its body as it came', async () => {
  await using listen = await listening(['--json', '--secret', SECRET]);
  await listen.post({ body: '{"run_id":\n"r-1","n":12345678901234567890}' });
  const [line] = await listen.stdout.match(/.*\n/);

  expect(line).toContain('"body":{"run_id": "r-1","n":12345678901234567890}}');
  expect(JSON.parse(line)).toMatchObject({
    path: '/hook?x=1',
    run_id: 'r-1',
    attempt: 1,
    signature: 'ok',
    duplicate: false,
    bytes: 42,
    status: 200,
  });
  expect(Date.parse((JSON.parse(line) as { received_at: string }).received_at)).toBeGreaterThan(1.7e12);
});

describe('signatures', () => {
  const unsigned = { 'x-request-id': 'r-1' };
  it.each<[string, string[], RunOptions, Record<string, string>, object]>([
    ['matches', ['--secret', SECRET], {}, signed(BODY), { signature: 'ok' }],
    ['matches one of several', ['--secret', 'a', '--secret', SECRET], {}, signed(BODY), { signature: 'ok' }],
    [
      'matches the secret of the environment',
      [],
      { env: { AFTERWORD_WEBHOOK_SECRET: SECRET } },
      signed(BODY),
      { signature: 'ok' },
    ],
    ['does not match', ['--secret', 'a'], {}, signed(BODY), { signature: 'bad', reason: 'no_match' }],
    ['is missing', ['--secret', SECRET], {}, unsigned, { signature: 'none' }],
    ['cannot be checked', [], {}, signed(BODY), { signature: 'unchecked' }],
  ])('%s', async (_, argv, options, headers, expected) => {
    await using listen = await listening(['--json', ...argv], options);
    expect((await listen.post({ headers })).status).toBe(200);
    const [line] = await listen.stdout.match(/.*\n/);
    expect(JSON.parse(line)).toMatchObject(expected);
  });
});

describe('duplicates', () => {
  it('are deliveries that were accepted before', async () => {
    await using listen = await listening(['--json']);
    await listen.post({ headers: signed(BODY, 'r-1') });
    await listen.post({ headers: signed(BODY, 'r-2') });
    await listen.post({ headers: signed(BODY, 'r-1') });
    await listen.stdout.match(/(.*\n){3}/);
    expect(listen.stdout.lines.map(line => (JSON.parse(line) as { duplicate: boolean }).duplicate)).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('are not the retries of one that was not', async () => {
    await using listen = await listening(['--status', '404']);
    expect((await listen.post({ headers: signed(BODY, 'r-1', 1) })).status).toBe(404);
    await listen.post({ headers: signed(BODY, 'r-1', 2) });
    await listen.stdout.match(/attempt 2 .* answered 404/);
    expect(listen.stdout.text).not.toContain('duplicate');
  });
});

it('cannot be made to write to the terminal what it should not', async () => {
  await using listen = await listening([]);
  await listen.post({ body: '\u001b[2Jtext \u009b1m\nnext \u202e line' });
  await listen.stdout.match(/next.*\n/);
  expect(listen.stdout.text).toContain('    \\u001b[2Jtext \\u009b1m\n    next \\u202e line\n');
});

it('shows the beginning of a long body', async () => {
  await using listen = await listening([]);
  await listen.post({ body: JSON.stringify(Array.from({ length: 50_000 }, (_, index) => index)) });
  await listen.stdout.match(/…\n$/);
  expect(listen.stdout.lines.slice(1, 4)).toEqual(['    [', '      0,', '      1,']);
  expect(listen.stdout.lines).toHaveLength(18);
});

describe('forwarding', () => {
  it('passes on the same bytes and headers, and answers with the status it gets', async () => {
    const seen: { url: string | undefined; headers: Record<string, unknown>; body: string }[] = [];
    await using server = createServer((request, response) => {
      void text(request).then(body => {
        seen.push({ url: request.url, headers: request.headers, body });
        response.writeHead(418).end('short and stout');
      });
    }).listen(0, '127.0.0.1');
    await new Promise(resolve => server.once('listening', resolve));
    const target = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    await using listen = await listening(['--forward-to', `http://${target}/own?y=2`, '--json']);

    expect((await listen.post()).status).toBe(418);
    expect(seen).toMatchObject([{ url: '/own?y=2', headers: { ...signed(BODY), host: target }, body: BODY }]);
    server.closeAllConnections();
  });

  it('cuts the connection where the server cannot be reached', async () => {
    await using listen = await listening(['--forward-to', 'http://127.0.0.1:1/', '--json']);
    await expect(listen.post()).rejects.toThrow('fetch failed');
    const [line] = await listen.stdout.match(/.*\n/);
    expect(JSON.parse(line)).toMatchObject({ error: 'http://127.0.0.1:1 cannot be reached: ECONNREFUSED' });
  });
});

it('takes nothing but POST', async () => {
  await using listen = await listening([]);
  const answer = await fetch(listen.address, { headers: { connection: 'close' } });
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('POST');
});

it('takes no more than 64 MiB', async () => {
  await using listen = await listening(['--json']);
  const body = Buffer.alloc(64 * 1024 * 1024 + 1, ' ');
  const answer = await fetch(listen.address, { method: 'POST', body, headers: { connection: 'close' } });
  expect(answer.status).toBe(413);
  const [line] = await listen.stdout.match(/.*\n/);
  expect(JSON.parse(line)).toMatchObject({ status: 413 });
});

describe('start and end', () => {
  it('tells its address on standard error, as it goes into a query', async () => {
    await using listen = await listening([]);
    expect(listen.stderr.text).toContain(`webhookEndpoint=${encodeURIComponent(listen.address)}\n`);
    expect(listen.stdout.text).toBe('');
  });

  it('ends well when it is asked to, answered or not', async () => {
    const listen = await listening(['--delay', '1h']);
    const post = fetch(listen.address, { method: 'POST', body: BODY }).catch(() => 'cut off');
    listen.stop();
    expect(await listen.exit).toBe(0);
    expect(await post).toBe('cut off');
  });

  it('says that a port is taken', async () => {
    await using first = await listening([]);
    const { port } = new URL(first.address);
    const second = start(['listen', '--port', port]);
    expect(await second.exit).toBe(1);
    expect(second.stderr.text).toBe(`error: cannot listen on 127.0.0.1:${port}: the port is taken\n`);
  });

  it.each([
    ['--port', '65536'],
    ['--port', 'x'],
    ['--status', '99'],
    ['--delay', '2h'],
    ['--forward-to', 'ftp://127.0.0.1/'],
    ['--forward-to', '127.0.0.1:3000'],
  ])('refuses %s %s', async (option, value) => {
    const listen = start(['listen', option, value]);
    expect(await listen.exit).toBe(2);
    expect(listen.stderr.text).toContain(option);
  });
});
