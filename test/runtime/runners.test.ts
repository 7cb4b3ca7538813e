/**
 * The runners of both languages, as processes, through their Unix sockets: one suite, run for each, and what
 * only one of them has.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

const SOON = { timeout: 10_000, interval: 5 };
const RUNNERS = join(import.meta.dirname, '..', '..', 'src', 'runtime', 'runners');
const FUNCTIONS = join(import.meta.dirname, 'functions');

interface Language {
  readonly command: readonly string[];
  readonly extension: string;
  /** Text that a program consists of which cannot be imported. */
  readonly broken: string;
}

const NODE: Language = {
  command: [process.execPath, join(RUNNERS, 'node.ts')],
  extension: 'ts',
  broken: `import './missing.ts';`,
};
const PYTHON: Language = {
  command: ['python3', '-u', join(RUNNERS, 'python', 'runner.py')],
  extension: 'py',
  broken: 'import missing',
};

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'runner-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A runner's process. */
class Runner {
  readonly socket: string;
  readonly child: ChildProcess;
  readonly ended: Promise<readonly unknown[]>;
  readonly agent = new Agent({ keepAlive: true });
  stdout = '';
  stderr = '';

  constructor({ command, extension }: Language, entry = join(FUNCTIONS, `main.${extension}`)) {
    this.socket = join(mkdtempSync(join(tmpdir(), 'runner-')), 'socket');
    this.child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        PYTHONDONTWRITEBYTECODE: '1', // beside the functions of this suite
        AFTERWORD_SOCKET: this.socket,
        AFTERWORD_ENTRY: entry,
      },
    });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(this.child, 'close');
  }

  async ready(): Promise<this> {
    while (!(await this.accepts())) {
      if (this.child.exitCode !== null) throw new Error(`the runner has ended: ${this.stderr}`);
      await sleep(5);
    }
    return this;
  }

  async accepts(): Promise<boolean> {
    const socket = connect(this.socket);
    try {
      await once(socket, 'connect');
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    this.child.kill('SIGKILL');
    await this.ended;
    rmSync(join(this.socket, '..'), { recursive: true });
  }

  /** Sends a call; the answer has begun, and its body is to be read. */
  async open(
    name: string,
    body: string | Uint8Array,
    { runId = 'run-0', chunked = false, method = 'POST' } = {},
  ): Promise<IncomingMessage> {
    const length = chunked ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const req = request({
      socketPath: this.socket,
      agent: this.agent,
      method,
      path: `/${name}`,
      headers: { 'Content-Type': 'application/json', 'X-Request-Id': runId, ...length },
    });
    if (chunked) req.write(body.slice(0, body.length / 2));
    req.end(chunked ? body.slice(body.length / 2) : body);
    const [answer] = (await once(req, 'response')) as [IncomingMessage];
    return answer;
  }

  async callRaw(name: string, body: string | Uint8Array, options = {}) {
    const answer = await this.open(name, body, options);
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const { statusCode: status, headers } = answer;
    return { status, type: headers['content-type'], bytes, text: bytes.toString() };
  }

  /** Parameters and result as values. */
  async call(name: string, parameters: object = {}, options = {}) {
    const { status, text } = await this.callRaw(name, JSON.stringify(parameters), options);
    return { status, body: JSON.parse(text) as unknown };
  }
}

async function startRunner(language: Language, entry?: string): Promise<Runner> {
  const runner = new Runner(language, entry);
  onTestFinished(() => runner.stop());
  return runner.ready();
}

function errorAnswer(status: number, type: string, message: unknown) {
  return { status, body: { error: { type, message } } };
}

async function appears(file: string): Promise<void> {
  await vi.waitFor(() => expect(existsSync(file)).toBe(true), SOON);
}

function linesOf(text: string): string[] {
  return text.split('\n').slice(0, -1);
}

describe.each([
  ['the Node runner', NODE],
  ['the Python runner', PYTHON],
])('%s', (_, language) => {
  let runner: Runner;
  beforeAll(async () => {
    runner = await new Runner(language).ready();
  });
  afterAll(() => runner.stop());

  describe('answers with the result', () => {
    it.each([
      ['null', 'null'],
      ['true', 'true'],
      ['"text"', '"text"'],
      ['-12.5', '-12.5'],
      ['""', '""'],
      ['{"b":[1,{"a":null}],"a":{}}', '{"b":[1,{"a":null}],"a":{}}'],
      ['{"status_code":"kept"}', '{"status_code":"kept"}'],
      ['"\\u00e9\\u20ac\\ud834\\udd1e"', '"é€𝄞"'],
      ['"\\ud834 alone"', '"\\ud834 alone"'],
      ['"\\u2028\\u0000\\n"', '"\u2028\\u0000\\n"'],
    ])('%s', async (value, result) => {
      const answer = await runner.callRaw('echo', `{"value": ${value} }`);
      expect(answer).toMatchObject({ status: 200, type: 'application/json', text: result });
    });

    it('of a function that returns nothing', async () => {
      expect(await runner.call('nothing')).toEqual({ status: 200, body: null });
    });

    it('of a call without a body', async () => {
      expect(await runner.callRaw('nothing', '')).toMatchObject({ status: 200, text: 'null' });
    });

    it('with the status_code in it left to the gateway', async () => {
      const body = { status_code: 418, message: 'short and stout' };
      expect(await runner.call('teapot')).toEqual({ status: 200, body });
    });

    it('as bytes', async () => {
      const { type, bytes } = await runner.callRaw('binary', '{}');
      expect({ type, bytes }).toEqual({
        type: 'application/octet-stream',
        bytes: Buffer.from([0, 255, 10, 128]),
      });
    });

    it.each([
      ['with a length', false],
      ['in chunks', true],
    ])('of 20 MB, sent %s', async (_, chunked) => {
      const body = `{"value":"${'é'.repeat(10_000_000)}"}`;
      const { text } = await runner.callRaw('echo', Buffer.from(body), { chunked });
      expect(`{"value":${text}}` === body).toBe(true);
    });
  });

  describe('answers with the error', () => {
    it.each([
      ['of a class of one’s own', 'deny', 'OutOfStock', 'no more pears'],
      ['that means something else outside', 'misuse', 'TypeError', 'raised inside'],
    ])('%s, and prints where it was thrown', async (_, name, type, message) => {
      const runId = `throws-${name}`;
      expect(await runner.call(name, {}, { runId })).toEqual(errorAnswer(500, type, message));
      const own = () => linesOf(runner.stderr).filter(line => line.startsWith(`@${runId}\t`));
      await vi.waitFor(() => {
        expect(own().some(line => line.includes(message))).toBe(true);
        expect(own().some(line => line.includes(`main.${language.extension}`))).toBe(true);
      }, SOON);
    });

    it.each(['absent', '_hidden', 'Thing', 'constant', 'sqrt', '__class__', 'toString', 'default', ''])(
      'of a function that there is not: %s',
      async name => {
        const { status, body } = await runner.call(name);
        expect({ status, body }).toEqual(errorAnswer(404, 'FunctionNotFound', expect.any(String)));
        const { message } = (body as { error: { message: string } }).error;
        expect(message).toMatch(new RegExp(`^there is no function '${name}', there are: .*\\becho, `));
        expect(message.split(':')[1]).not.toContain(' _');
      },
    );

    it.each([
      ['{', /^the parameters are not JSON: /],
      ['{"value":NaN}', /^the parameters are not JSON: /],
      [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /^the parameters are not JSON: /],
      ['[]', /^the parameters are not a JSON object$/],
      ['null', /^the parameters are not a JSON object$/],
    ])('of parameters that are none: %s', async (body, message) => {
      const { status, text } = await runner.callRaw('echo', body);
      expect({ status, body: JSON.parse(text) as unknown }).toEqual(
        errorAnswer(400, 'InvalidParameters', expect.stringMatching(message)),
      );
    });

    it.each([
      ['nan', 'result.scores[2] is NaN, which JSON cannot hold'],
      ['infinity', 'result is -Infinity, which JSON cannot hold'],
      ['circle', 'result.parts[1].whole refers back to result, which JSON cannot hold'],
    ])('of a result that JSON cannot hold: %s', async (kind, message) => {
      expect(await runner.call('flawed', { kind })).toEqual(
        errorAnswer(500, 'UnserializableResult', message),
      );
    });

    it('of a result that is nested too deeply', async () => {
      expect(await runner.call('deep', { levels: 100 })).toMatchObject({ status: 200 });
      expect(await runner.call('deep', { levels: 100_000 })).toEqual(
        errorAnswer(500, 'UnserializableResult', expect.stringMatching(/^result is nested /)),
      );
    });

    it('of parameters that are nested too deeply, or of what is made of them', async () => {
      const body = `{"value":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
      const { status, text } = await runner.callRaw('echo', body);
      expect(status).toBe(language === NODE ? 500 : 400);
      expect(text).toMatch(/^\{"error":\{"type":"\w+","message":"(the parameters are|result is) nested /);
    });

    it('of another method', async () => {
      const { status } = await runner.callRaw('echo', '', { method: 'PUT' });
      expect(status).toBe(language === NODE ? 405 : 501);
    });
  });

  describe('streams', () => {
    const streams = language === NODE ? ['count', 'countAsync', 'countWeb'] : ['count', 'countAsync'];

    it.each(streams)('an event for each value: %s', async name => {
      expect(await runner.callRaw(name, '{"to":3}')).toMatchObject({
        status: 200,
        type: 'text/event-stream',
        text: 'data: {"number":1}\n\ndata: {"number":2}\n\ndata: {"number":3}\n\n',
      });
    });

    it.each(streams)('no event where there is no value: %s', async name => {
      const answer = await runner.callRaw(name, '{"to":0}');
      expect(answer).toMatchObject({ status: 200, type: 'text/event-stream', text: '' });
    });

    it.each(streams)('an error in the midst as the last event: %s', async name => {
      const { text } = await runner.callRaw(name, '{"to":3,"failAfter":1}');
      expect(text).toBe(
        'data: {"number":1}\n\nevent: error\ndata: {"type":"OutOfStock","message":"no more than 1"}\n\n',
      );
    });

    it.each(streams)('nothing but the error where it comes first: %s', async name => {
      expect(await runner.call(name, { to: 3, failAfter: 0 })).toEqual(
        errorAnswer(500, 'OutOfStock', 'no more than 0'),
      );
    });

    it('a value that JSON cannot hold as an error', async () => {
      const { text } = await runner.callRaw('flawedStream', '{}');
      const message = 'result[1].bad[0] is NaN, which JSON cannot hold';
      expect(text).toBe(
        `data: 1\n\nevent: error\ndata: {"type":"UnserializableResult","message":"${message}"}\n\n`,
      );
    });

    it('each value when it is there', async () => {
      const folder = temporaryFolder();
      const answer = await runner.open('gated', JSON.stringify({ folder }));
      const events = answer.setEncoding('utf8')[Symbol.asyncIterator]();
      expect(await events.next()).toMatchObject({ value: 'data: "first"\n\n' });
      writeFileSync(join(folder, 'go'), '');
      expect(await events.next()).toMatchObject({ value: 'data: "second"\n\n' });
      expect(await events.next()).toMatchObject({ done: true });
    });

    it('no faster than the caller reads', async () => {
      const answer = await runner.open('flood', '{}');
      let before = -1;
      let now = 0;
      // It has stopped once it stands still over several calls.
      for (let still = 0; still < 20; still = now === before ? still + 1 : 0) {
        before = now;
        now = (await runner.call('flooded')).body as number;
      }
      expect(now).toBeLessThan(500);
      let size = 0;
      for await (const chunk of answer) size += (chunk as Buffer).length;
      expect(size).toBe(1_000 * (64 * 1024 + 'data: ""\n\n'.length));
    });

    it.each(['endless', 'silent'])('until the caller hangs up: %s', async name => {
      const folder = temporaryFolder();
      const answer = await runner.open(name, JSON.stringify({ folder }));
      await once(answer, 'data');
      expect(existsSync(join(folder, 'closed'))).toBe(false);
      answer.destroy();
      await appears(join(folder, 'closed'));
    });
  });

  describe('prints', () => {
    it('every line of a call with its run id', async () => {
      await runner.call('chatter', {}, { runId: 'chatty' });
      const own = (text: string) => linesOf(text).filter(line => line.startsWith('@chatty\t'));
      await vi.waitFor(() => expect(own(runner.stdout).at(-1)).toBe('@chatty\twithout an end'), SOON);
      await vi.waitFor(() => expect(own(runner.stderr)).toContain('@chatty\tto stderr'), SOON);
      expect(own(runner.stdout)).toEqual(
        expect.arrayContaining(['@chatty\ttwo', '@chatty\tlines', '@chatty\tfrom a task']),
      );
      const all = () => [...own(runner.stdout), ...own(runner.stderr)].join('\n');
      await vi.waitFor(() => expect(all()).toContain('from the log'), SOON);
    });

    it.each(['meet', 'meetAsync'])('whole lines of calls that run at the same time: %s', async name => {
      const folder = temporaryFolder();
      const meet = (me: string, other: string) => runner.call(name, { folder, me, other }, { runId: me });
      // Each ends only when it has seen the other begin.
      const answers = await Promise.all([meet(`${name}-a`, `${name}-b`), meet(`${name}-b`, `${name}-a`)]);
      expect(answers.map(answer => answer.body)).toEqual([`${name}-a`, `${name}-b`]);
      await vi.waitFor(() => {
        const lines = linesOf(runner.stdout);
        expect(lines).toContain(`@${name}-a\t${name}-a waits, and has met ${name}-b`);
        expect(lines).toContain(`@${name}-b\t${name}-b waits, and has met ${name}-a`);
      }, SOON);
    });
  });

  it('keeps connections', async () => {
    await runner.call('nothing');
    const req = request({ socketPath: runner.socket, agent: runner.agent, method: 'POST', path: '/nothing' });
    const [answer] = (await once(req.end(), 'response')) as [IncomingMessage];
    for await (const _ of answer);
    expect(req.reusedSocket).toBe(true);
  });

  it('runs nothing when the caller hangs up before the body is whole', async () => {
    const folder = temporaryFolder();
    const body = JSON.stringify({ folder });
    for (const head of [`Content-Length: ${body.length + 1}`, 'Transfer-Encoding: chunked']) {
      const socket = connect(runner.socket);
      socket.end(
        `POST /slow HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n${head.startsWith('T') ? '400\r\n' : ''}${body}`,
      );
      await once(socket.resume(), 'close');
    }
    expect(await runner.call('nothing')).toEqual({ status: 200, body: null });
    expect(existsSync(join(folder, 'started'))).toBe(false);
  });

  describe('ends', () => {
    it('with 1, saying why, when the entry cannot be imported', async () => {
      const entry = join(temporaryFolder(), `broken.${language.extension}`);
      writeFileSync(entry, language.broken);
      const runner = new Runner(language, entry);
      onTestFinished(() => runner.stop());
      expect(await runner.ended).toEqual([1, null]);
      expect(runner.stderr).toContain('missing');
      expect(runner.stderr).toContain(entry);
      expect(existsSync(runner.socket)).toBe(false);
    });

    it('with 1 when the entry has no functions', async () => {
      const entry = join(temporaryFolder(), `empty.${language.extension}`);
      writeFileSync(entry, '');
      const runner = new Runner(language, entry);
      onTestFinished(() => runner.stop());
      expect(await runner.ended).toEqual([1, null]);
      expect(runner.stderr).toContain(`${entry} `);
    });

    it('when a function ends the process', async () => {
      const runner = await startRunner(language);
      await expect(runner.call('exit', { code: 7 })).rejects.toThrow('socket hang up');
      expect(await runner.ended).toEqual([7, null]);
    });

    it('with 0 on SIGTERM, at once where no call runs', async () => {
      const runner = await startRunner(language);
      await runner.call('nothing'); // leaves a connection that is kept
      runner.child.kill('SIGTERM');
      expect(await runner.ended).toEqual([0, null]);
    });

    it('with 0 on SIGTERM, after the calls that run, and takes no more', async () => {
      const runner = await startRunner(language);
      const folder = temporaryFolder();
      const answer = runner.call('slow', { folder });
      const stream = await runner.open('gated', JSON.stringify({ folder }));
      await appears(join(folder, 'started'));
      runner.child.kill('SIGTERM');
      await vi.waitFor(async () => expect(await runner.accepts()).toBe(false), SOON);
      expect(runner.child.exitCode).toBeNull();
      writeFileSync(join(folder, 'go'), '');
      expect(await answer).toEqual({ status: 200, body: 'done' });
      let text = '';
      for await (const chunk of stream.setEncoding('utf8')) text += String(chunk);
      expect(text).toBe('data: "first"\n\ndata: "second"\n\n');
      expect(await runner.ended).toEqual([0, null]);
    });
  });
});

describe('the Node runner alone', () => {
  let runner: Runner;
  beforeAll(async () => {
    runner = await new Runner(NODE).ready();
  });
  afterAll(() => runner.stop());

  it('tells a function its run', async () => {
    expect(await runner.call('who', {}, { runId: 'run-7' })).toEqual({ status: 200, body: 'run-7' });
  });

  it('tells a function when its caller hangs up', async () => {
    const folder = temporaryFolder();
    const call = runner.open('watchful', JSON.stringify({ folder }));
    call.catch(() => {}); // it never gets an answer
    await appears(join(folder, 'started'));
    expect(existsSync(join(folder, 'aborted'))).toBe(false);
    runner.agent.destroy();
    await appears(join(folder, 'aborted'));
  });

  it.each([
    ['bigint', 'result.items[3] is a BigInt, which JSON cannot hold'],
    ['function', 'result["call me"] is a function, which JSON cannot hold'],
    ['map', 'result[0] is a Map, which JSON cannot hold'],
    ['promise', 'result.later is a Promise, which JSON cannot hold'],
  ])('refuses a %s in a result', async (kind, message) => {
    expect(await runner.call('flawed', { kind })).toEqual(errorAnswer(500, 'UnserializableResult', message));
  });

  it.each([
    ['a default function', 'mjs', `export default () => 'default';`, 'run', 'default'],
    [
      'a function run before a default',
      'js',
      `export const run = () => 'run'; export default () => 1;`,
      'run',
      'run',
    ],
    [
      'a default object',
      'mts',
      `export default { me: 'I', run() { return this.me as string } };`,
      'run',
      'I',
    ],
    ['CommonJS', 'cjs', `exports.run = () => 'cjs';`, 'run', 'cjs'],
    ['a CommonJS function', 'cjs', `module.exports = () => 'cjs';`, 'run', 'cjs'],
  ])('serves %s', async (_, extension, text, name, result) => {
    const entry = join(temporaryFolder(), `main.${extension}`);
    writeFileSync(join(entry, '..', 'package.json'), '{"type":"module"}');
    writeFileSync(entry, text);
    const runner = await startRunner(NODE, entry);
    expect(await runner.call(name)).toEqual({ status: 200, body: result });
    expect(await runner.call('absent')).toEqual(
      errorAnswer(404, 'FunctionNotFound', "there is no function 'absent', there are: run"),
    );
  });

  it.each([
    ['an exception', `setTimeout(() => { throw new Error('lost') });`],
    ['a rejection', `setTimeout(() => Promise.reject(new Error('lost')));`],
  ])('ends with 1 on %s that belongs to nobody', async (_, text) => {
    const entry = join(temporaryFolder(), 'main.ts');
    writeFileSync(entry, `export const run = () => { ${text} return new Promise(() => {}); };`);
    const runner = await startRunner(NODE, entry);
    await expect(runner.call('run')).rejects.toThrow('socket hang up');
    expect(await runner.ended).toEqual([1, null]);
    expect(runner.stderr).toContain('Error: lost');
  });
});

describe('the Python runner alone', () => {
  let runner: Runner;
  beforeAll(async () => {
    runner = await new Runner(PYTHON).ready();
  });
  afterAll(() => runner.stop());

  it.each(['123456789012345678901234567890', '-9007199254740993'])('passes the number %s', async number => {
    const { text } = await runner.callRaw('echo', `{"value":[${number}]}`);
    expect(text).toBe(`[${number}]`);
  });

  it('refuses a number of thousands of digits', async () => {
    const { status, text } = await runner.callRaw('echo', `{"value":${'9'.repeat(100_000)}}`);
    expect(status).toBe(400);
    expect(text).toContain('"type":"InvalidParameters"');
  });

  it.each([
    ['echo', {}, "echo() is missing the parameter 'value'"],
    ['pair', { left: 1, more: 2 }, "pair() is missing the parameter 'right'"],
    ['pair', {}, "pair() is missing the parameters 'left', 'right'"],
    ['pair', { left: 1, right: 2, other: 3 }, "pair() does not take the parameter 'other'"],
    ['greet', { greeting: 'Hi' }, "greet() is missing the parameter 'name'"],
    ['countAsync', {}, "countAsync() is missing the parameter 'to'"],
    [
      'positional',
      { left: 1 },
      "positional() takes the parameter 'left' by position alone, which no call can give",
    ],
  ])('refuses parameters that do not fit: %s(%j)', async (name, parameters, message) => {
    expect(await runner.call(name, parameters)).toEqual(errorAnswer(400, 'InvalidParameters', message));
  });

  it('fills in defaults, and gives the rest to **', async () => {
    const { body } = await runner.call('greet', { name: 'Ada', 'of a kind': 1 });
    expect(body).toEqual(['Hello', 'Ada', { 'of a kind': 1 }]);
  });

  it.each([
    ['set', 'result.items[2] is a set, which JSON cannot hold'],
    ['object', 'result["on a day"] is a date, which JSON cannot hold'],
    ['bytes', 'result[0] is a bytes, which JSON cannot hold'],
    ['key', 'result.table has a key that is a tuple, which JSON cannot hold'],
    ['digits', 'result[0] is an int of too many digits, which JSON cannot hold'],
  ])('refuses in a result: %s', async (kind, message) => {
    expect(await runner.call('flawed', { kind })).toEqual(errorAnswer(500, 'UnserializableResult', message));
  });

  it('runs asynchronous functions', async () => {
    expect(await runner.call('echoAsync', { value: 1 })).toEqual({ status: 200, body: 1 });
    expect(await runner.call('denyAsync')).toEqual(errorAnswer(500, 'OutOfStock', 'no more pears'));
  });

  it.each(['leave', 'leaveAsync'])('goes on after sys.exit in a function: %s', async name => {
    expect(await runner.call(name)).toEqual(errorAnswer(500, 'SystemExit', '3'));
    expect(await runner.call('echoAsync', { value: 1 })).toEqual({ status: 200, body: 1 });
  });

  it('imports what is beside the entry', async () => {
    expect(await runner.call('neighbour')).toEqual({ status: 200, body: 'next door' });
  });

  it('serves what __all__ lists, and nothing else', async () => {
    const entry = join(temporaryFolder(), 'main.py');
    writeFileSync(
      entry,
      '__all__ = ["sqrt", "_own"]\nfrom math import sqrt\ndef _own(): pass\ndef other(): pass',
    );
    const runner = await startRunner(PYTHON, entry);
    expect(await runner.callRaw('other', '{}')).toMatchObject({
      text: expect.stringContaining("'other', there are: sqrt\"") as string,
    });
  });

  it('takes a decorated function for what its wrapper takes', async () => {
    const entry = join(temporaryFolder(), 'main.py');
    writeFileSync(
      entry,
      `import functools
def _with_database(function):
    @functools.wraps(function)
    def wrapper(**parameters):
        return function("database", **parameters)
    return wrapper
@_with_database
def run(database, name):
    return [database, name]
@functools.lru_cache()
def cached(name):
    return name
`,
    );
    const runner = await startRunner(PYTHON, entry);
    expect(await runner.call('run', { name: 'Ada' })).toEqual({ status: 200, body: ['database', 'Ada'] });
    expect(await runner.call('cached')).toEqual(
      errorAnswer(400, 'InvalidParameters', "cached() is missing the parameter 'name'"),
    );
  });
});
