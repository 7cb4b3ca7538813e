/**
 * What holds for every request to the API: paths and methods that are not there, failures of the service, and
 * requests that are unusual but allowed.
 */
import { describe, expect, it } from 'vitest';
import { ProblemBody } from '../../src/api/problems.ts';
import { callRaw, parseAnswer } from '../support/caller.ts';
import { converse } from '../support/conversation.ts';
import { openApi, pathOf, PROJECT } from './rig.ts';

const LIST = `/v4/${PROJECT}/_runs`;
const RUN_ID = '0192f0c1-2d3e-7f40-8a5b-6c7d8e9f0a1b';

describe('a path that is not there', () => {
  it.each([
    '/_',
    '/_run',
    '/_runs/',
    '/_runsx',
    `/_runs/${RUN_ID}/`,
    `/_runs/${RUN_ID}/stop`,
    '/_runs//cancel',
  ])('%s', async path => {
    const api = await openApi();
    for (const method of ['GET', 'POST']) {
      const { status, headers, json } = await api.get(`/v4/${PROJECT}${path}`, { method });
      expect([status, headers.get('content-type')]).toEqual([404, 'application/problem+json']);
      expect(ProblemBody.strict().parse(json)).toMatchObject({
        code: 'not_found',
        run_id: headers.get('x-request-id'),
      });
    }
  });
});

describe('a method that is not there', () => {
  it.each([
    ['POST', LIST, 'GET, HEAD'],
    ['DELETE', LIST, 'GET, HEAD'],
    ['OPTIONS', LIST, 'GET, HEAD'],
    ['TRACE', LIST, 'GET, HEAD'],
    ['PROPFIND', `${LIST}?limit=x`, 'GET, HEAD'],
    ['PUT', pathOf(RUN_ID), 'GET, HEAD'],
    ['POST', pathOf('x'), 'GET, HEAD'],
    ['GET', pathOf(RUN_ID, '/cancel'), 'POST'],
  ])('%s %s', async (method, path, allow) => {
    const api = await openApi();
    const answer = await callRaw({ port: api.port, method, path });
    expect([answer.status, answer.header('allow')]).toEqual([405, allow]);
    expect(answer.header('content-type')).toBe('application/problem+json');
    expect(answer.header('cache-control')).toBe('no-store');
    expect(ProblemBody.strict().parse(JSON.parse(answer.body.toString()))).toMatchObject({
      code: 'method_not_allowed',
      run_id: answer.header('x-request-id'),
    });
  });
});

describe('HEAD', () => {
  it.each([
    [LIST, 200, 'application/json'],
    [`${LIST}?limit=x`, 400, 'application/problem+json'],
    [pathOf(RUN_ID), 404, 'application/problem+json'],
    [pathOf(RUN_ID, '/cancel'), 405, 'application/problem+json'],
  ])('%s is answered as GET is, without the body', async (path, status, type) => {
    const api = await openApi();
    const answer = await callRaw({ port: api.port, method: 'HEAD', path });
    expect([answer.status, answer.header('content-type')]).toEqual([status, type]);
    expect(answer.body).toHaveLength(0);
  });
});

describe('a failure of the service', () => {
  const broken = () => Promise.reject(new Error('no such table: secrets'));
  it.each([
    ['GET', LIST],
    ['GET', pathOf(RUN_ID)],
    ['GET', pathOf(RUN_ID, '?wait=1s')],
    ['POST', pathOf(RUN_ID, '/cancel')],
  ])('in %s %s is logged, and its cause is not told', async (method, path) => {
    const api = await openApi({ find: broken, list: broken, wait: broken, cancel: broken });
    const { status, headers, text } = await api.get(path, { method });
    expect(status).toBe(500);
    expect(ProblemBody.strict().parse(JSON.parse(text))).toMatchObject({ code: 'internal_error' });
    expect(text).not.toContain('secrets');
    expect(api.lines).toMatchObject([
      { level: 'error', msg: 'a request to the API failed', run_id: headers.get('x-request-id') },
    ]);
    expect(api.lines[0]).toHaveProperty('err.message', 'no such table: secrets');
  });

  it('is one whatever was thrown', async () => {
    // A text on purpose: code that is not ours may reject with anything.
    // oxlint-disable-next-line prefer-promise-reject-errors
    const api = await openApi({ list: () => Promise.reject('a text') });
    expect((await api.get(LIST)).json).toMatchObject({ status: 500, code: 'internal_error' });
    expect(api.lines).toMatchObject([{ level: 'error', err: 'a text' }]);
  });
});

describe('an unusual request', () => {
  it('in HTTP/1.0 needs no Host', async () => {
    const api = await openApi();
    const caller = await converse(api.port);
    caller.send(`GET ${LIST} HTTP/1.0\r\n\r\n`);
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\{"runs":\[\],"next_cursor":null\}$/);
  });

  it('with a Host that makes no URL is malformed', async () => {
    const api = await openApi();
    const caller = await converse(api.port);
    caller.send(`GET ${LIST} HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n`);
    await caller.end();
    const answer = parseAnswer(caller.bytes);
    expect(answer.status).toBe(400);
    expect(ProblemBody.strict().parse(JSON.parse(answer.body.toString()))).toMatchObject({
      code: 'bad_request',
      run_id: answer.header('x-request-id'),
    });
  });

  it('with a body that nobody wants is answered, and so is the next on its connection', async () => {
    const api = await openApi();
    const caller = await converse(api.port);
    const post = `POST ${pathOf(RUN_ID, '/cancel')} HTTP/1.1\r\nHost: test\r\n`;
    caller.send(`${post}Content-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`);
    await caller.until('"run_not_found"');
    const { length } = caller.text;
    caller.send(`GET ${LIST} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`);
    expect((await caller.end()).slice(length)).toMatch(/^HTTP\/1\.1 200 [^]*"next_cursor":null/);
  });

  it('that waits to be asked for its body is answered, and its connection closed', async () => {
    const api = await openApi();
    const caller = await converse(api.port);
    const post = `POST ${pathOf(RUN_ID, '/cancel')} HTTP/1.1\r\nHost: test\r\n`;
    caller.send(`${post}Content-Length: 5\r\nExpect: 100-continue\r\n\r\n`);
    expect(await caller.end()).toMatch(/^HTTP\/1\.1 404 [^]*"run_not_found"/);
  });
});

it('leaves the globals of the process as they are', async () => {
  const before = [globalThis.Request, globalThis.Response];
  const api = await openApi();
  await api.get(LIST);
  expect([globalThis.Request, globalThis.Response]).toEqual(before);
});
