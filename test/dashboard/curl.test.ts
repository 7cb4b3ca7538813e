/**
 * What a shell makes of the command: the arguments that were meant, whatever is in them.
 */
import { spawnSync } from 'node:child_process';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { type CurlRequest, curlCommand } from '../../dashboard/src/curl.ts';

/** In place of curl: tells its arguments, each with a NUL behind it, and then what comes in. */
const CURL = `curl() { for argument; do printf '%s\\0' "$argument"; done; [ "$argument" = @- ] && cat; :; }\n`;

function ranBy(request: CurlRequest): { arguments: string[]; input: string } {
  const { stdout, stderr, status } = spawnSync('sh', {
    input: CURL + curlCommand(request),
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  const parts = stdout.split('\0');
  return { arguments: parts.slice(0, -1), input: parts.at(-1)! };
}

/** All that a shell could stumble over; no argument can hold NUL. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "'",
        '"',
        '`',
        '$(id)',
        '\\',
        '\n',
        ' ',
        '!',
        '*',
        '~',
        '#',
        ';',
        '&',
        '-',
        '\r',
        '@',
        '%',
      ),
      fc.string({ unit: 'grapheme' }),
    ),
    { maxLength: 8 },
  )
  .map(parts => parts.join('').replaceAll('\0', ''));

it('gives curl the arguments that were meant', () => {
  fc.assert(
    fc.property(text, text, text, (path, value, body) => {
      const url = `https://receiver.example/${path}`;
      const { arguments: given } = ranBy({ method: 'POST', url, headers: { 'X-Any': value }, body });
      const glob = /[[\]{}]/.test(url) ? ['--globoff'] : [];
      const data = ['--header', `X-Any: ${value}`, '--data-raw', body];
      expect(given).toEqual(['--request', 'POST', ...glob, url, ...data]);
    }),
    { numRuns: 60 },
  );
});

it('brings a body that is too long for an argument in by a pipe', () => {
  const body = JSON.stringify({ result: "it's long: é".repeat(20_000) });
  const given = ranBy({ method: 'POST', url: 'http://127.0.0.1/hook?a=1&b=2', headers: {}, body });
  expect(given.arguments).toEqual([
    '--request',
    'POST',
    'http://127.0.0.1/hook?a=1&b=2',
    '--data-binary',
    '@-',
  ]);
  expect(given.input).toBe(body);
});

it('can be read', () => {
  const headers = { 'Content-Type': 'application/json' };
  expect(curlCommand({ method: 'POST', url: 'https://a.example/hook', headers, body: '{"a":1}' })).toBe(
    [
      'curl --request POST https://a.example/hook',
      "--header 'Content-Type: application/json'",
      `--data-raw '{"a":1}'`,
    ].join(' \\\n  '),
  );
});
