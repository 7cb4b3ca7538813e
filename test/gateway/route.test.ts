import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Problem, type ProblemCode } from '../../src/errors.ts';
import { type CallTarget, functionName, parseTarget } from '../../src/gateway/route.ts';

function refusal(read: () => unknown): ProblemCode {
  try {
    read();
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
  throw new Error('not refused');
}

function parsed(raw: string): CallTarget | undefined {
  try {
    return parseTarget(raw);
  } catch (error) {
    if (error instanceof Problem) return undefined;
    throw error;
  }
}

describe('parseTarget', () => {
  it.each([
    ['/v4/p/a/run', 'p', 'a', '/run', undefined],
    ['/v4/p/a', 'p', 'a', '/', undefined],
    ['/v4/p/a/', 'p', 'a', '/', undefined],
    ['/v4/p/a?x=1', 'p', 'a', '/', 'x=1'],
    ['/v4/p/a?x=/b/', 'p', 'a', '/', 'x=/b/'],
    ['/v4/p/a/?', 'p', 'a', '/', ''],
    ['/v4/p/a/run?', 'p', 'a', '/run', ''],
    ['/v4/p/a/x/y.z/?a=/b/../c?d', 'p', 'a', '/x/y.z/', 'a=/b/../c?d'],
    ['/v4/p-demo/chat_2/v1/%41%2525?q=%zz%', 'p-demo', 'chat_2', '/v1/%41%2525', 'q=%zz%'],
    ['/v4/p/a//x', 'p', 'a', '//x', undefined],
    ['/v4/p/a/x//', 'p', 'a', '/x//', undefined],
    ['/v4/p/a/...', 'p', 'a', '/...', undefined],
    ['/v4/p/a/..x/.well-known/x../%2e%2e%2e/a..', 'p', 'a', '/..x/.well-known/x../%2e%2e%2e/a..', undefined],
    ['/v4/p/a/x;v=1/y;..', 'p', 'a', '/x;v=1/y;..', undefined],
    ['/v4/p/a/x?q=%2e%2e%2f%00', 'p', 'a', '/x', 'q=%2e%2e%2f%00'],
    ['/v4/p/a/%e2%82%ac', 'p', 'a', '/%e2%82%ac', undefined],
    // Names that nobody can have are told apart by the look-up alone.
    ['/v4/_p/_runs/1', '_p', '_runs', '/1', undefined],
    ['/v4/p%2dx/a%41/run', 'p%2dx', 'a%41', '/run', undefined],
    ['/v4/__proto__/constructor/run', '__proto__', 'constructor', '/run', undefined],
  ])('reads %s', (raw, projectId, app, rest, query) => {
    expect(parseTarget(raw)).toEqual({ projectId, app, rest, query });
  });

  it.each([
    '',
    '*',
    'v4/p/a/run',
    'host.example:443',
    'http://host.example/v4/p/a/run',
    'HTTPS://host.example/v4/p/a/run',
    '?/v4/p/a/run',
    '//host.example/v4/p/a/run',
    '///v4/p/a/run',
    '/\\host.example/v4/p/a/run',
    '/v4/p/a/../b/run',
    '/v4/p/a/..',
    '/v4/p/a/.',
    '/v4/p/a/./run',
    '/v4/p/../a/run',
    '/v4/./p/a/run',
    '/../v4/p/a/run',
    '/..',
    '/.?x',
    '/v4/p/a/..?x=1',
    '/v4/p/a/%2e%2e/run',
    '/v4/p/a/%2E%2e/run',
    '/v4/p/a/.%2e/run',
    '/v4/p/a/%2E./run',
    '/v4/p/a/%2e',
    '/v4/p/a/%2E?x',
    '/v4/p/%2e%2E/run',
    '/v4/p/a/..;/run',
    '/v4/p/a/..;x=1/run',
    '/v4/p/a/.;x',
    '/v4/p/a/%2e%2E;x/run',
    '/v4/p/a/..%3b/run',
    '/v4/p/a/..%3Bx',
    '/v4/p/a/x%2fy',
    '/v4/p/a/x%2Fy',
    '/v4/p%2fa/run',
    '/v4/p/a/x\\y',
    '/v4/p/a/x%5cy',
    '/v4/p/a/x%5Cy',
    '/v4/p/a/x%00',
    '/v4/p/a/x\0',
    '/v4/p/a/x\ty',
    '/v4/p/a/x y',
    '/v4/p/a/x\x7f',
    '/v4/p/a/\xe9',
    '/v4/p/a/\u20ac',
    '/v4/p/a/x#y',
    '/v4/p/a/x?y#z',
    '/v4/p/a/x?y z',
    '/v4/p/a/x?y\r\nHost: z',
    '/v4/p/a/x?y\x7f',
    '/v4/p/a/x?y\xc3\xa9',
    '/v4/p/a/%',
    '/v4/p/a/%4',
    '/v4/p/a/%4?1',
    '/v4/p/a/%zz',
    '/v4/p/a/%4g',
    '/v4/p/a/% 1',
    '/v4/p/a/%\x1041',
  ])('refuses %j', raw => {
    expect(refusal(() => parseTarget(raw))).toBe('bad_request_target');
  });

  it.each([
    '/',
    '/v4',
    '/v4/',
    '/v4/p',
    '/v4/p/',
    '/v4/p?/a',
    '/v4/p/?a',
    '/v4//a/run',
    '/v4/p//run',
    '/V4/p/a',
    '/v5/p/a',
    '/v4x/p/a',
    '/x/v4/p/a',
    '/healthz',
    '/?/v4/p/a',
  ])('serves nothing at %s', raw => {
    expect(refusal(() => parseTarget(raw))).toBe('not_found');
  });

  it('loses no byte: the parts put together are the target', () => {
    const piece = fc.constantFrom(
      '/',
      '.',
      '..',
      ';',
      '%2e',
      '%41',
      '%2f',
      '?',
      'a',
      'Z9',
      '_',
      '-',
      '%',
      '//',
      '&',
    );
    const target = fc.array(piece, { maxLength: 12 }).map(pieces => `/v4/p/a/${pieces.join('')}`);
    fc.assert(
      fc.property(target, raw => {
        const parts = parsed(raw);
        if (parts === undefined) return;
        const query = parts.query === undefined ? '' : `?${parts.query}`;
        expect(`/v4/${parts.projectId}/${parts.app}${parts.rest}${query}`).toBe(raw);
      }),
      { numRuns: 2_000 },
    );
  });

  it('accepts only paths that a normalising reader takes for the same path', () => {
    let accepted = 0;
    const piece = fc.constantFrom('/', '.', '%2e', '%2E', 'x', ';', '%3b', '\\', '%5c', '?', '#', '%2f');
    const target = fc.array(piece, { maxLength: 10 }).map(pieces => `/v4/p/a/${pieces.join('')}`);
    fc.assert(
      fc.property(target, raw => {
        const parts = parsed(raw);
        if (parts === undefined) return;
        accepted++;
        expect(new URL(raw, 'http://host.example').pathname).toBe(`/v4/p/a${parts.rest}`);
        expect(decodeURIComponent(parts.rest)).not.toMatch(/(^|\/)\.\.?(;|\/|$)/);
      }),
      { numRuns: 5_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });
});

describe('functionName', () => {
  it.each([
    ['/run', 'run'],
    ['/Run_2-x', 'Run_2-x'],
    [`/${'a'.repeat(63)}`, 'a'.repeat(63)],
  ])('reads %s', (rest, name) => {
    expect(functionName(rest)).toBe(name);
  });

  it.each([
    '/',
    '//run',
    '/run/',
    '/run/x',
    '/_run',
    '/-run',
    '/r.n',
    '/r%75n',
    `/${'a'.repeat(64)}`,
    '/run\n',
  ])('serves no function at %j', rest => {
    expect(refusal(() => functionName(rest))).toBe('not_found');
  });
});
