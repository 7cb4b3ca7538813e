/**
 * `afterword call` against a real service, with apps that a test puts on stage.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../store/samples.ts';
import { readText } from '../support/app.ts';
import { type Inbox, openInbox, signatureOf } from '../support/inbox.ts';
import { startService, type TestService } from '../support/service.ts';
import { type AppHandler, openStage, type Stage } from '../support/stage.ts';
import { run, type RunOptions, type Running, start } from './run.ts';

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

let stage: Stage<AppHandler>;
let inbox: Inbox;
let service: TestService;

beforeAll(async () => {
  stage = await openStage();
  inbox = await openInbox();
  service = await startService({
    apps: { fn: { runtime: 'cortex', url: stage.url }, web: { runtime: 'custom', url: stage.url } },
  });
});

afterAll(async () => {
  await service.stop();
  await stage.close();
  await inbox.close();
});

function optionsOf({ env, ...options }: RunOptions): RunOptions {
  return { ...options, env: { AFTERWORD_URL: service.base, AFTERWORD_TOKEN: service.token, ...env } };
}

const call = (argv: readonly string[], options: RunOptions = {}) =>
  run(['call', ...argv], optionsOf(options));
const startCall = (argv: readonly string[], options: RunOptions = {}): Running =>
  start(['call', ...argv], optionsOf(options));

const answer =
  (status: number, body: string, type = 'text/plain'): AppHandler =>
  (req, res) => {
    req.resume();
    res.writeHead(status, { 'Content-Type': type }).end(body);
  };

/** Answers with what it was sent. */
const mirror: AppHandler = async (req, res) => {
  const { method, url, rawHeaders: headers } = req;
  const body = await readText(req);
  res.writeHead(200, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify({ method, url, headers, body }));
};

interface Mirrored {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: string;
}

async function mirrored(argv: readonly string[], options?: RunOptions): Promise<Mirrored> {
  const { code, stdout, stderr } = await call(argv, options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as Mirrored;
}

describe('a call', () => {
  it.each([
    ['of a function', 'fn', '{"a":1}', /^\{"run_id":".*"result":\{"a":1\}.*\}$/],
    ['of a custom app', 'web', 'three cats', /^three cats$/],
  ])('%s prints the answer as it comes', async (_, app, body, expected) => {
    const name = stage.play(answer(200, body, app === 'fn' ? 'application/json' : 'text/plain'));
    const { code, stdout, stderr } = await call([`${app}/${name}`, '--data', '{}']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(expected);
  });

  it('prints while the answer still arrives', async () => {
    const more = Promise.withResolvers<void>();
    const name = stage.play(async (_, res) => {
      res.write('first\n');
      await more.promise;
      res.end('second\n');
    });
    const { stdout, exit } = startCall([`web/${name}`]);
    await stdout.match(/^first\n$/);
    more.resolve();
    expect(await exit).toBe(0);
    expect(stdout.text).toBe('first\nsecond\n');
  });

  it.each([
    [200, 0],
    [302, 0],
    [404, 1],
    [503, 1],
  ])('with the status %d exits %d', async (status, expected) => {
    const name = stage.play(answer(status, 'body'));
    const { code, stdout, stderr } = await call([`web/${name}`]);
    expect({ code, stdout }).toEqual({ code: expected, stdout: 'body' });
    expect(stderr).toMatch(
      expected === 0
        ? /^$/
        : new RegExp(`^error: the answer has status ${status} \\(run ${UUID.source}\\)\n$`),
    );
  });

  it('ends the line on a terminal', async () => {
    const name = stage.play(answer(200, 'no line break'));
    expect((await call([`web/${name}`], { terminal: true })).stdout).toBe('no line break\n');
  });

  it('tells when the answer breaks off', async () => {
    const name = stage.play((_, res) => {
      res.writeHead(200, { 'Content-Length': 100 });
      res.write('the beginning', () => res.destroy());
    });
    const { code, stdout, stderr } = await call([`web/${name}`]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'the beginning' });
    expect(stderr).toMatch(/^error: the answer broke off: .+\n$/);
  });

  it('prints a problem of the app like any answer, and one of the service as a line', async () => {
    const own = '{"code":"mine","detail":"own","run_id":"x"}';
    const name = stage.play(answer(400, own, 'application/problem+json'));
    expect(await call([`web/${name}`])).toMatchObject({ code: 1, stdout: own });

    const { code, stdout, stderr } = await call(['nowhere/run']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^error: .+ \\(app_not_found, run ${UUID.source}\\)\n$`));
  });

  it('tells that nobody is there', async () => {
    expect(await call(['web/'], { env: { AFTERWORD_URL: 'http://127.0.0.1:1' } })).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'error: no answer from http://127.0.0.1:1 (connection refused): is the service running there?\n',
    });
  });
});

describe('the request', () => {
  it('is a POST without a body unless told otherwise', async () => {
    const name = stage.play(mirror);
    const { method, url, body, headers } = await mirrored([`web/${name}`]);
    expect({ method, url, body }).toEqual({ method: 'POST', url: `/${name}`, body: '' });
    expect(headers).not.toContain('content-type');
  });

  it('has the method, path, query and headers that are given', async () => {
    const name = stage.play(mirror);
    const path = `web/${name}/a%20b?x=1&y=ü`;
    const { method, url, headers } = await mirrored([path, '--method', 'get', '--header', 'X-Name: Zoë: 1']);
    expect({ method, url }).toEqual({ method: 'GET', url: `/${name}/a%20b?x=1&y=%C3%BC` });
    expect(Buffer.from(headers[headers.indexOf('X-Name') + 1]!, 'latin1').toString()).toBe('Zoë: 1');
  });

  it.each<[string, string, RunOptions, string]>([
    ['the command line', '{"n":1}', {}, '{"n":1}'],
    ['a file', '@data.json', {}, '{"from":"a file"}'],
    ['standard input', '-', { stdin: '{"from":"stdin"}' }, '{"from":"stdin"}'],
  ])('has a body from %s', async (_, data, options, expected) => {
    const name = stage.play(mirror);
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, 'data.json'), '{"from":"a file"}');
    const { body, headers } = await mirrored([`web/${name}`, '--data', data], { ...options, cwd });
    expect(body).toBe(expected);
    expect(headers[headers.findIndex(each => /^content-type$/i.test(each)) + 1]).toBe('application/json');
  });

  it('has the content type that is given', async () => {
    const name = stage.play(mirror);
    const argv = [`web/${name}`, '--data', 'a,b', '--header', 'content-type: text/csv'];
    const { headers } = await mirrored(argv);
    const types = headers.filter((_, index) => /^content-type$/i.test(headers[index - 1] ?? ''));
    expect(types).toEqual(['text/csv']);
  });

  it.each<[string, string[], RunOptions, string]>([
    ['an option', ['--secret', 's3crét'], {}, 's3crét'],
    ['a variable', [], { env: { AFTERWORD_WEBHOOK_SECRET: 'of-env' } }, 'of-env'],
  ])('asks for a delivery, signed by the secret of %s', async (_, argv, options, secret) => {
    const name = stage.play((req, res) => res.end(req.headers['x-request-id']));
    const target = `${inbox.url}?a=1&b=2`;
    const { stdout: runId } = await call([`web/${name}`, '--webhook', target, ...argv], options);
    const delivery = await inbox.of(runId);
    expect(delivery.path).toBe('/hook?a=1&b=2');
    expect(delivery.headers['x-service-webhook-signature']).toBe(signatureOf(delivery, secret));
  });
});

describe('an asynchronous call', () => {
  it('prints the id of its run, and leaves', async () => {
    const go = Promise.withResolvers<void>();
    const name = stage.play(async (_, res) => {
      await go.promise;
      res.end('done');
    });
    const { code, stdout, stderr } = await call([`web/${name}`, '--async']);
    go.resolve();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^${UUID.source}\n$`));
    const { stdout: json } = await call([`web/${name}`, '--async', '--json']);
    expect(json).toMatch(new RegExp(`^\\{"run_id":"${UUID.source}"\\}\n$`));
  });

  it.each([['--async', '--wait'], ['--wait']])('is waited for with %s %s', async (...argv) => {
    const name = stage.play(answer(200, '{"n":12345678901234567890}', 'application/json'));
    const { code, stdout, stderr } = await call([`fn/${name}`, '--data', '{}', ...argv.filter(Boolean)]);
    expect(code).toBe(0);
    const [runId] = UUID.exec(stderr)!;
    expect(stderr).toBe(`run ${runId}\n`);
    expect(stdout).toMatch(new RegExp(`^\\{"state":"succeeded",.*"run_id":"${runId}",.*\\}\n$`));
    expect(stdout).toContain('"result":{"n":12345678901234567890}');
  });

  it('that fails exits 1, and prints what there is', async () => {
    const name = stage.play(answer(500, '{"error":{"type":"TypeError","message":"no"}}', 'application/json'));
    const { code, stdout, stderr } = await call([`fn/${name}`, '--wait']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ state: 'failed', status_code: 500, error: { message: 'no' } });
    expect(stderr).toMatch(/\nerror: the run failed: TypeError\n$/);
  });

  it('with a key that was used before is the same run', async () => {
    const name = stage.play(answer(200, 'x'));
    const argv = [`web/${name}`, '--async', '--idempotency-key', 'k-1'];
    const [first, second] = [await call(argv), await call(argv)];
    expect(first.stdout).toMatch(UUID);
    expect(second).toEqual(first);
    const other = await call([...argv, '--data', 'other']);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('(idempotency_key_reused, run ');
  });

  it('is delivered', async () => {
    const name = stage.play(answer(200, 'delivered'));
    const { stdout } = await call([`web/${name}`, '--async', '--webhook', inbox.url]);
    const { body } = await inbox.of(stdout.trim());
    expect(JSON.parse(body.toString())).toMatchObject({ result: 'delivered' });
  });
});

it.each([
  ['its usual data directory', []],
  ['another', ['--data', 'elsewhere']],
])('the call that `dev` prints can be pasted, with %s', async (_, argv) => {
  const cwd = temporaryDirectory();
  const dev = start(['dev', '--port', '0', ...argv], { cwd, env: { AFTERWORD_LOG_LEVEL: 'silent' } });
  const [, line] = await dev.stdout.match(/^afterword (call .*)\n/m);
  const words = [...line!.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
  const { code, stdout } = await run(words, { cwd });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ state: 'succeeded', result: { greeting: 'Hello, Ada!' } });
  await dev.stdout.match(/signature ok/);
  dev.stop();
  expect(await dev.exit).toBe(0);
});

it.each([
  [['--data', '{}'], 'missing required argument'],
  [['/hello/run'], 'is no app'],
  [['hello/run', '--idempotency-key', 'k'], 'add --async'],
  [['hello/run', '--data', '@/no/such/file'], '--data: ENOENT'],
  [['hello/run', '--method', 'A B'], '--method'],
  [['hello/run', '--header', 'no colon'], '--header'],
  [['hello/run', '--header', 'Content-Length: 3'], 'made by the command itself'],
  [['hello/run', '--timeout', '0s'], '--timeout'],
  [['hello/run', '--webhook', 'http://h', '--secret', 'a\nb'], 'X-Webhook-Secret'],
])('%j is wrong usage', async (argv, message) => {
  const { code, stdout, stderr } = await call(argv);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});
