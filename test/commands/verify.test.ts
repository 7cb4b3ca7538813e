import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseHeaderLines } from '../../src/commands/verify.ts';
import { run } from './run.ts';

const SECRET = 's3cret';
const BODY = '{"run_id":"r-1"}\n';
const digest = createHmac('sha256', SECRET).update(`r-1.1700000000.${BODY}`).digest('hex');
const HEADERS = ['--request-id', 'r-1', '--timestamp', '1700000000', '--signature', `v1,${digest}`];

const cwd = mkdtempSync(join(tmpdir(), 'verify-'));
afterAll(() => rmSync(cwd, { recursive: true }));
const files = {
  'body.json': BODY,
  'secret.txt': `${SECRET}\n`,
  'secret-crlf.txt': `${SECRET}\r\n`,
  'empty.txt': '\n',
  'headers.txt': [
    'POST /hook HTTP/1.1',
    'Host: receiver:3000',
    'x-request-id: r-1',
    'X-Service-Webhook-Timestamp:1700000000',
    `X-Service-Webhook-Signature: v1,${digest}  `,
    '',
  ].join('\r\n'),
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);

describe('a delivery that matches', () => {
  it.each<[string, string[], { stdin?: string; env?: Record<string, string> }]>([
    ['the secret as an option', ['--secret', SECRET, ...HEADERS], { stdin: BODY }],
    ['the secret from the environment', HEADERS, { stdin: BODY, env: { AFTERWORD_WEBHOOK_SECRET: SECRET } }],
    ['the secret in a file', ['--secret-file', 'secret.txt', ...HEADERS], { stdin: BODY }],
    ['the secret in a file of Windows', ['--secret-file', 'secret-crlf.txt', ...HEADERS], { stdin: BODY }],
    ['the body in a file', ['--secret', SECRET, '--body', 'body.json', ...HEADERS], {}],
    ['the headers in a file', ['--secret', SECRET, '--headers', 'headers.txt'], { stdin: BODY }],
    [
      'an option over the file of headers',
      ['--secret', SECRET, '--headers', 'headers.txt', '--signature', digest],
      { stdin: BODY },
    ],
  ])('%s', async (_, argv, options) => {
    expect(await run(['verify', ...argv], { cwd, ...options })).toEqual({
      code: 0,
      stdout: 'ok: r-1, sent at 2023-11-14T22:13:20.000Z\n',
      stderr: '',
    });
  });

  it('as JSON', async () => {
    const { code, stdout } = await run(['verify', '--secret', SECRET, '--json', ...HEADERS], { stdin: BODY });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ ok: true, run_id: 'r-1', sent_at: '2023-11-14T22:13:20.000Z' });
  });
});

describe('a delivery that does not', () => {
  it.each<[string, string[], string]>([
    ['no_match', ['--secret', 'other', ...HEADERS], BODY],
    ['no_match', ['--secret', SECRET, ...HEADERS], BODY.trimEnd()],
    ['missing_header', ['--secret', SECRET, ...HEADERS.slice(2)], BODY],
    ['bad_signature', ['--secret', SECRET, ...HEADERS.slice(0, 4), '--signature', 'v1'], BODY],
    ['timestamp_out_of_tolerance', ['--secret', SECRET, '--tolerance', '5m', ...HEADERS], BODY],
  ])('%s: %j', async (reason, argv, stdin) => {
    const plain = await run(['verify', ...argv], { stdin });
    expect(plain).toMatchObject({ code: 1, stderr: '' });
    expect(plain.stdout).toMatch(new RegExp(`^${reason}: .+\n$`));

    const json = await run(['verify', '--json', ...argv], { stdin });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, reason });
  });
});

describe('wrong usage', () => {
  it.each<[string, string[], string]>([
    ['no secret', HEADERS, 'a secret is needed'],
    ['an empty secret', ['--secret', '', ...HEADERS], 'a secret is needed'],
    ['an empty file of the secret', ['--secret-file', 'empty.txt', ...HEADERS], 'a secret is needed'],
    ['a file that is not there', ['--secret', SECRET, '--body', 'none.json'], 'none.json'],
    ['a duration that is none', ['--secret', SECRET, '--tolerance', 'soon'], 'duration'],
    ['an unknown option', ['--sekret', SECRET], "unknown option '--sekret'"],
  ])('%s', async (_, argv, message) => {
    const { code, stdout, stderr } = await run(['verify', ...argv], { cwd, stdin: BODY });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/^error: /);
  });
});

it.each([
  ['X-Request-Id: r-1', { 'x-request-id': 'r-1' }],
  ['< x-request-id: r-1\r\n< a:b', { 'x-request-id': 'r-1', a: 'b' }],
  ['> X-Request-Id:   r-1  ', { 'x-request-id': 'r-1' }],
  ['HTTP/1.1 200 OK\n\n* Connected to a (::1)\n{ "a": 1 }', {}],
])('reads headers from %j', (text, headers) => {
  expect(parseHeaderLines(text)).toEqual(headers);
});
