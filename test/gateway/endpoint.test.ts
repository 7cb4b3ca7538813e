import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTargetPolicy } from '../../src/delivery/target.ts';
import { Problem, type ProblemCode } from '../../src/errors.ts';
import { readWebhook, type RequestedWebhook } from '../../src/gateway/endpoint.ts';
import { readQuery } from '../../src/gateway/query.ts';

const OWN_PORT = 8080;
const policy = createTargetPolicy({
  allow: ['10.1.0.0/16', '127.0.0.0/8'],
  listeners: () => [{ address: '127.0.0.1', port: OWN_PORT }],
  localAddresses: () => ['127.0.0.1'],
});

interface Read {
  /** What the app sees. */
  readonly query: string | undefined;
  readonly webhook?: RequestedWebhook;
}

function read(query: string | undefined, rawHeaders: string[] = [], requireSecret = false): Read {
  const { rest, webhookEndpoint: endpoint } = readQuery(query);
  const webhook = readWebhook({ endpoint, rawHeaders, project: { requireSecret }, policy });
  return { query: rest, ...(webhook !== undefined && { webhook }) };
}

function target(query: string): string | undefined {
  return read(query).webhook?.target;
}

function refusal(reading: () => unknown): { code: ProblemCode; detail: string } {
  try {
    reading();
  } catch (error) {
    if (error instanceof Problem) return { code: error.code, detail: error.message };
    throw error;
  }
  throw new Error('not refused');
}

describe('the query that the app sees', () => {
  it.each([
    [undefined, undefined],
    ['', ''],
    ['a=1&b=2', 'a=1&b=2'],
    ['a=%zz&&b=+%20', 'a=%zz&&b=+%20'],
    ['webhookendpoint=http://x.example/', 'webhookendpoint=http://x.example/'],
    [
      'xwebhookEndpoint=1&webhookEndpointx=2&webhookEndpoint[]=3',
      'xwebhookEndpoint=1&webhookEndpointx=2&webhookEndpoint[]=3',
    ],
    ['a=webhookEndpoint&b=webhookEndpoint=1', 'a=webhookEndpoint&b=webhookEndpoint=1'],
    [
      'webhookEndpoint%=1&webhook%45=2&webhook%45ndpoint%zz=3',
      'webhookEndpoint%=1&webhook%45=2&webhook%45ndpoint%zz=3',
    ],
    ['webhook+Endpoint=1&a;webhookEndpoint=2', 'webhook+Endpoint=1&a;webhookEndpoint=2'],
  ])('%s asks for no webhook and stays', (query, seen) => {
    expect(read(query)).toEqual({ query: seen });
  });

  const W = 'webhookEndpoint=http%3A%2F%2Fx.example%2F';
  it.each([
    [W, undefined],
    [`${W}&b=2`, 'b=2'],
    [`a=1&${W}`, 'a=1'],
    [`a=1&${W}&b=2`, 'a=1&b=2'],
    [`${W}&`, ''],
    [`&${W}`, ''],
    [`&${W}&`, '&'],
    [`a&&${W}&&b`, 'a&&&b'],
    [`a=%zz&${W}&b=+%20&a=%zz`, 'a=%zz&b=+%20&a=%zz'],
    [`webhook%45ndpoint=http://x.example/&b`, 'b'],
    ['a&%77ebhookEndpoin%74=http://x.example/', 'a'],
  ])('%s becomes %s', (query, seen) => {
    expect(read(query)).toEqual({ query: seen, webhook: { target: 'http://x.example/', confidential: {} } });
  });

  it('keeps every other byte: as if split at & and joined without the parameter', () => {
    const pair = fc.string({
      unit: fc.constantFrom('a', '=', '%', '4', '+', ';', '?', 'w'),
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 5 }), fc.nat(), (others, place) => {
        const at = place % (others.length + 1);
        const query = [...others.slice(0, at), W, ...others.slice(at)].join('&');
        expect(read(query).query).toBe(others.length === 0 ? undefined : others.join('&'));
      }),
    );
  });
});

describe('the target', () => {
  it.each([
    ['https%3A%2F%2Fx.example%2Fhook%3Fa%3D1%26b%3D2', 'https://x.example/hook?a=1&b=2'],
    ['https://x.example/hook?a=1', 'https://x.example/hook?a=1'],
    ['https://x.example/hook?a=1+2', 'https://x.example/hook?a=1+2'],
    ['https%3A%2F%2Fx.example%2F%2B+', 'https://x.example/++'],
    ['https%3A%2F%2Fx.example%2F%2541%253D', 'https://x.example/%41%3D'],
    ['HTTPS://X.Example:443', 'https://x.example/'],
    ['http://x.example:8080/a/../b', 'http://x.example:8080/b'],
    ['http://x.example/%23top', 'http://x.example/'],
    ['http://x.example/?a%23top', 'http://x.example/?a'],
    ['http://x.example/?', 'http://x.example/?'],
    ['http%3A%2F%2Fx.example%2F%C3%A9', 'http://x.example/%C3%A9'],
    ['http://b%C3%BCcher.example/%C3%A0', 'http://xn--bcher-kva.example/%C3%A0'],
    ['http://10.1.2.3/', 'http://10.1.2.3/'],
    ['http://[2606:4700::1111]/x', 'http://[2606:4700::1111]/x'],
    [`http://127.0.0.1:${OWN_PORT + 1}/`, `http://127.0.0.1:${OWN_PORT + 1}/`],
  ])('of webhookEndpoint=%s is %s', (value, expected) => {
    expect(target(`webhookEndpoint=${value}`)).toBe(expected);
  });

  it('is the URL that was encoded, whatever it is', () => {
    const part = fc.string({ unit: 'grapheme', maxLength: 20 });
    fc.assert(
      fc.property(part, part, part, (path, query, fragment) => {
        const whole = new URL(`https://x.example/${path}?${query}#${fragment}`).href;
        const expected = whole.includes('#') ? whole.slice(0, whole.indexOf('#')) : whole;
        expect(target(`a=1&webhookEndpoint=${encodeURIComponent(whole)}&b`)).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['user:password', 'user:password'],
    ['user', 'user:'],
    ['user:', 'user:'],
    [':password', ':password'],
    ['user:pass:word', 'user:pass:word'],
    ['us%40er:p%2Fw%20d', 'us@er:p/w d'],
    ['%C3%BCser:p%C3%A4ss', 'üser:päss'],
  ])('moves the user information %s into a Basic header', (userInfo, credentials) => {
    const { webhook } = read(`webhookEndpoint=${encodeURIComponent(`https://${userInfo}@x.example/hook`)}`);
    expect(webhook?.target).toBe('https://x.example/hook');
    expect(webhook?.confidential).toEqual({
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    });
  });

  it('takes empty user information for none', () => {
    const expected = { target: 'https://x.example/', confidential: {} };
    expect(read('webhookEndpoint=https://@x.example/').webhook).toEqual(expected);
  });

  it('may have 2,048 characters, decoded, and no more', () => {
    const base = 'https://x.example/';
    const longest = `${base}${'%C3%A9'.repeat(2048 - base.length)}`;
    expect(target(`webhookEndpoint=${longest}`)).toBe(longest);
    expect(refusal(() => read(`webhookEndpoint=${longest}a`))).toEqual({
      code: 'invalid_webhook_endpoint',
      detail: 'webhookEndpoint is longer than 2048 characters',
    });
  });

  it.each([
    ['webhookEndpoint', 'is empty'],
    ['webhookEndpoint=', 'is empty'],
    ['a=1&webhookEndpoint=&b=2', 'is empty'],
    ['webhookEndpoint=http://x.example/&webhookEndpoint=http://x.example/', 'is given more than once'],
    ['webhookEndpoint&webhookEndpoint=http://x.example/', 'is given more than once'],
    ['webhookEndpoint=http://x.example/&webhook%45ndpoint=http://y.example/', 'is given more than once'],
    ['%77ebhookEndpoint=http://x.example/&a&webhookEndpoint=', 'is given more than once'],
    ['webhookEndpoint=http://x.example/%zz', 'is not percent-encoded UTF-8'],
    ['webhookEndpoint=http://x.example/%', 'is not percent-encoded UTF-8'],
    ['webhookEndpoint=http://x.example/%4', 'is not percent-encoded UTF-8'],
    ['webhookEndpoint=http://x.example/%E9', 'is not percent-encoded UTF-8'],
    ['webhookEndpoint=http://x.example/%C0%AF', 'is not percent-encoded UTF-8'],
    ['webhookEndpoint=http://x.example/%ED%A0%80', 'is not percent-encoded UTF-8'],
    ['webhookEndpoint=http://x.example/ a', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/\ta', 'holds white space or control characters'],
    ['webhookEndpoint= http://x.example/', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/%20a', 'holds white space or control characters'],
    ['webhookEndpoint=%20http://x.example/', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/%0d%0aHost:y', 'holds white space or control characters'],
    ['webhookEndpoint=ht%09tp://x.example/', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/%00', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/%7f', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/%C2%85', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/%C2%A0', 'holds white space or control characters'],
    ['webhookEndpoint=http://x.example/%E2%80%A8', 'holds white space or control characters'],
    ['webhookEndpoint=%EF%BB%BFhttp://x.example/', 'holds white space or control characters'],
    ['webhookEndpoint=x.example/hook', 'is not an absolute http or https URL'],
    ['webhookEndpoint=//x.example/hook', 'is not an absolute http or https URL'],
    ['webhookEndpoint=/hook', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http:x.example', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http:/x.example', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http:%5C%5Cx.example', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http://%5Cx.example', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http:///x.example', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http://', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http://?x', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http://%23x', 'is not an absolute http or https URL'],
    ['webhookEndpoint=ftp://x.example/', 'is not an absolute http or https URL'],
    ['webhookEndpoint=file:///etc/passwd', 'is not an absolute http or https URL'],
    ['webhookEndpoint=javascript:http://x.example/', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http%253A%252F%252Fx.example', 'is not an absolute http or https URL'],
    ['webhookEndpoint=http://:80/', 'is not a valid URL'],
    ['webhookEndpoint=http://user@/', 'is not a valid URL'],
    ['webhookEndpoint=http://x.example:99999/', 'is not a valid URL'],
    ['webhookEndpoint=http://[::1/', 'is not a valid URL'],
    ['webhookEndpoint=http://256.1.1.1/', 'is not a valid URL'],
    [
      'webhookEndpoint=http://a%253a:b@x.example/',
      'holds a user name or password that a Basic header cannot carry',
    ],
    [
      'webhookEndpoint=http://a:%250a@x.example/',
      'holds a user name or password that a Basic header cannot carry',
    ],
    [
      'webhookEndpoint=http://a%25zz:b@x.example/',
      'holds a user name or password that is not percent-encoded UTF-8',
    ],
    [
      'webhookEndpoint=http://a:%25ff@x.example/',
      'holds a user name or password that is not percent-encoded UTF-8',
    ],
  ])('is refused: %s', (query, what) => {
    expect(refusal(() => read(query))).toEqual({
      code: 'invalid_webhook_endpoint',
      detail: `webhookEndpoint ${what}`,
    });
  });

  it.each([
    'http://192.168.0.1/',
    'http://10.2.0.1/',
    'http://0x0a020001/',
    'http://167903233/',
    'http://[::1]/',
    'http://[::ffff:10.2.0.1]/',
    'https://user:password@169.254.169.254/latest',
    `http://127.0.0.1:${OWN_PORT}/v4/p/a/run`,
    `http://0x7f.1:${OWN_PORT}/`,
  ])('is forbidden: %s', url => {
    const { code, detail } = refusal(() => read(`webhookEndpoint=${encodeURIComponent(url)}`));
    expect(code).toBe('forbidden_target');
    expect(detail).not.toContain('password');
  });
});

describe('the secret', () => {
  const W = 'webhookEndpoint=http://x.example/';

  it('is the bytes on the wire, in memory of its own', () => {
    const bytes = Buffer.from('gehörig', 'utf8');
    const { webhook } = read(W, ['Host', 'h', 'x-WEBHOOK-secret', bytes.toString('latin1'), 'A', 'b']);
    expect(webhook).toEqual({ target: 'http://x.example/', confidential: { secret: new Uint8Array(bytes) } });
    expect(webhook?.confidential.secret?.buffer.byteLength).toBe(bytes.length);
  });

  it('goes along with the user information', () => {
    const { webhook } = read('webhookEndpoint=http://u:p@x.example/', ['X-Webhook-Secret', 's']);
    expect(webhook?.confidential).toEqual({ secret: Uint8Array.of(0x73), authorization: 'Basic dTpw' });
  });

  it('is not read from the values of other headers', () => {
    const { webhook } = read(W, ['X-Other-Header-1', 'X-Webhook-Secret', 'X-Webhook-Secret', 's']);
    expect(webhook?.confidential).toEqual({ secret: Uint8Array.of(0x73) });
  });

  it('may have 1,024 bytes', () => {
    const { webhook } = read(W, ['X-Webhook-Secret', 's'.repeat(1024)]);
    expect(webhook?.confidential.secret).toHaveLength(1024);
  });

  it.each([
    ['empty', [''], 'is empty'],
    ['too long', ['s'.repeat(1025)], 'is longer than 1024 bytes'],
    ['repeated', ['s', 's'], 'is given more than once'],
    ['repeated and empty', ['', 's'], 'is given more than once'],
  ])('is refused when %s, with a webhookEndpoint or without', (_, values, what) => {
    const headers = values.flatMap((value, at) => [
      at === 0 ? 'X-Webhook-Secret' : 'x-webhook-secret',
      value,
    ]);
    for (const query of [W, 'a=1', undefined]) {
      expect(refusal(() => read(query, headers))).toEqual({
        code: 'invalid_webhook_secret',
        detail: `X-Webhook-Secret ${what}`,
      });
    }
  });

  it('is required with a webhookEndpoint where the project says so', () => {
    expect(refusal(() => read(W, [], true)).code).toBe('secret_required');
    expect(read(W, ['X-Webhook-Secret', 's'], true).webhook).toBeDefined();
    expect(read('a=1', [], true)).toEqual({ query: 'a=1' });
  });
});
