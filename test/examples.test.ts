/**
 * The examples, run as their READMEs tell it: the service with examples/afterword.yaml, a receiver as a
 * process, each call that is shown, and what comes of it compared with what is shown.
 */
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { systemClock } from '../src/clock.ts';
import { indentJson } from '../src/commands/received.ts';
import { loadConfig } from '../src/config/load.ts';
import { createLogger } from '../src/log.ts';
import { createService, type Service } from '../src/service.ts';
import { issueToken } from '../src/token.ts';
import { Captured, run } from './commands/run.ts';
import { codeBlocksOf, ROOT, readDocument } from './docs/markdown.ts';
import { settled } from './docs/settled.ts';

const EXAMPLES = join(ROOT, 'examples');
const CONFIG = join(EXAMPLES, 'afterword.yaml');
const PROJECT = 'p-demo';
const SECRET = 'demo-webhook-secret';
const ENV = { PATH: process.env['PATH']!, HOME: process.env['HOME'] ?? '/', PYTHONDONTWRITEBYTECODE: '1' };

/** A program of an example, and what it prints. */
class Program {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly printed = new Captured();

  constructor(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(command[0]!, command.slice(1), {
      cwd: EXAMPLES,
      env: { ...ENV, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.child.stdout.pipe(this.printed);
  }

  async stop(): Promise<void> {
    const exit = once(this.child, 'exit');
    if (this.child.exitCode === null && this.child.kill()) await exit;
  }
}

const RECEIVERS = {
  'receiver-node': [process.execPath, 'receiver-node/receiver.ts'],
  'receiver-python': ['python3', 'receiver-python/receiver.py'],
} as const;

async function startReceiver(name: keyof typeof RECEIVERS): Promise<{ program: Program; url: string }> {
  const program = new Program(RECEIVERS[name], { PORT: '0', WEBHOOK_SECRET: SECRET });
  const [, url] = await program.printed.match(/^receiving on (\S+)\n/);
  return { program, url: url! };
}

const data = mkdtempSync(join(tmpdir(), 'examples-'));
const log = new Captured();
let service: Service;
let base: string;
let token: string;
let receiver: Awaited<ReturnType<typeof startReceiver>>;

beforeAll(async () => {
  const listeners = { AFTERWORD_LISTEN: '127.0.0.1:0', AFTERWORD_ADMIN: '127.0.0.1:0', AFTERWORD_DATA: data };
  const { config } = loadConfig({ file: CONFIG, env: { ...ENV, ...listeners }, cwd: ROOT });
  service = createService({
    config,
    version: '0.0.0-test',
    log: createLogger({ level: 'info', destination: log }),
  });
  const { listen } = await service.start();
  base = `http://127.0.0.1:${listen!.port}/v4/${PROJECT}`;
  const { secret } = config.projects.get(PROJECT)!.jwt;
  token = await issueToken({ secret: secret!, projectId: PROJECT, ttlSeconds: 3600, clock: systemClock });
  receiver = await startReceiver('receiver-node');
});

afterAll(async () => {
  await receiver.program.stop();
  await service.stop();
  rmSync(data, { recursive: true });
});

interface Answer {
  readonly runId: string;
  readonly text: string;
}

/** Makes a call as curl would, by the line that a document shows; its receiver is the one at `target`. */
async function curl(line: string, target = receiver.url): Promise<Answer> {
  const [, path] = /"\$BASE\/([^"]+)"/.exec(line)!;
  const headers = [...line.matchAll(/-H (["'])([\w-]+): (.+?)\1/g)].map(([, , name, value]) => [
    name!,
    value!.replace('$TOKEN', token),
  ]);
  const body = /-d '(.+?)'/.exec(line)?.[1];
  const answer = await fetch(`${base}/${path!.replace('%3A3000', `%3A${new URL(target).port}`)}`, {
    headers: Object.fromEntries(headers) as Record<string, string>,
    ...(body !== undefined && { method: 'POST', body }),
  });
  return { runId: answer.headers.get('X-Request-Id')!, text: await answer.text() };
}

/** Where to see what a document shows of a call, by the label of the block. */
const WITNESSES: Readonly<Record<string, (answer: Answer) => string | Promise<string>>> = {
  answer: ({ text }) => text,
  delivery: ({ runId }) => lineOf(receiver.program.printed, new RegExp(`^${runId} .*\n`, 'm')),
  log: ({ runId }) => lineOf(log, new RegExp(`^.*"stream".*${runId}.*\n`, 'm')),
};

async function lineOf(printed: Captured, pattern: RegExp): Promise<string> {
  const [line] = await printed.match(pattern);
  return line;
}

/** The same for JSON on one line, as it comes, and laid out in lines, as it is shown. */
function comparable(text: string): string {
  return settled(text.startsWith('{') ? indentJson(text) : text);
}

interface Step {
  readonly call: string;
  /** What is shown of it, by label. */
  readonly shown: Readonly<Record<string, string>>;
}

/** A call and the blocks that follow it, up to the next. */
function stepsOf(example: string): Step[] {
  const blocks = codeBlocksOf(readDocument(`examples/${example}/README.md`));
  const calls = blocks.flatMap(({ label }, index) => (label === 'call' ? [index] : []));
  return calls.map((start, index) => {
    const following = blocks.slice(start + 1, calls[index + 1]).filter(({ label }) => label !== '');
    return {
      call: blocks[start]!.text,
      shown: Object.fromEntries(following.map(({ label, text }) => [label, text])),
    };
  });
}

it('the configuration is one without mistakes or warnings', async () => {
  const { code, stdout, stderr } = await run(['config', 'check', '--config', CONFIG]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const name of ['hello', 'score', 'stream', 'chat'])
    expect(stdout).toContain(`  ${PROJECT}/${name}:\n`);
});

describe.each([
  ['hello', 3],
  ['score', 4],
  ['stream', 2],
  ['chat', 1],
])('%s does what it shows', (example, count) => {
  const steps = stepsOf(example);

  it('shows its calls', () => expect(steps).toHaveLength(count));

  it.each(steps)('$call', async ({ call, shown }) => {
    expect(Object.keys(shown)).toContain('answer');
    const answer = await curl(call);
    for (const [label, text] of Object.entries(shown)) {
      expect(comparable(await WITNESSES[label]!(answer))).toBe(comparable(text));
    }
  });
});

it('the chat is heard by server-sent events and by WebSocket, whoever speaks', async () => {
  const hangUp = new AbortController();
  const { body } = await fetch(`${base}/chat/events`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: hangUp.signal,
  });
  const events = new Captured();
  const listening = body!.pipeTo(Writable.toWeb(events)).catch(() => {});
  await events.match(/^: welcome\n\n/);

  const guest = new Program([process.execPath, 'chat/join.js'], { BASE: base, TOKEN: token });
  await guest.printed.match(/^joined\n/);
  guest.child.stdin.write('by WebSocket\n');
  await guest.printed.match(/\{"number":\d+,"text":"by WebSocket"\}\n/);
  await curl(`curl "$BASE/chat/messages" -H "Authorization: Bearer $TOKEN" -d '{"text":"by POST"}'`);
  await guest.printed.match(/\{"number":\d+,"text":"by POST"\}\n/);
  await events.match(
    /^data: \{"number":\d+,"text":"by WebSocket"\}\n\ndata: \{"number":\d+,"text":"by POST"\}\n\n/m,
  );

  const exit = once(guest.child, 'exit');
  guest.child.stdin.end();
  expect(await exit).toEqual([0, null]);
  hangUp.abort();
  await listening;
});

describe.each([
  ['receiver-node', 'hello'],
  ['receiver-python', 'score'],
] as const)('%s', (name, app) => {
  const [{ call } = { call: '' }] = stepsOf(app);
  const blocks = codeBlocksOf(readDocument(`examples/${name}/README.md`));
  const shown = blocks.find(({ label }) => label === 'printed')!.text;
  let program: Program;
  let url: string;

  beforeAll(async () => ({ program, url } = await startReceiver(name)));
  afterAll(() => program.stop());

  function post(id: string, secret: string): Promise<Response> {
    const body = JSON.stringify({ run_id: id, app: 'any', status_code: 200, result: 'grün' });
    const digest = createHmac('sha256', secret).update(`${id}.1700000000.${body}`).digest('hex');
    const headers = {
      'X-Request-Id': id,
      'X-Service-Webhook-Timestamp': '1700000000',
      'X-Service-Webhook-Signature': `v1,${digest}`,
    };
    return fetch(url, { method: 'POST', headers, body });
  }

  it('prints what it shows', async () => {
    const { runId } = await curl(call, url);
    await program.printed.match(new RegExp(`^${runId} .*\n`, 'm'));
    expect(settled(program.printed.text)).toBe(settled(shown));
  });

  it('knows what it has seen', async () => {
    for (const what of ['new', 'again']) {
      expect((await post('r1', SECRET)).ok).toBe(true);
      await program.printed.match(new RegExp(`^r1 ${what} any 200 .*\n`, 'm'));
    }
  });

  it('refuses what is not signed with its secret', async () => {
    expect((await post('r2', 'another')).status).toBe(401);
    await program.printed.match(/^refused.*\n/m);
    expect(program.printed.text).not.toContain('r2 ');
  });
});

describe('what is only shown', () => {
  it('is at least a program', () => {
    const python = 'import ast, sys; ast.parse(open(sys.argv[1]).read())';
    for (const command of [
      ['python3', '-c', python, 'fastapi/server.py'],
      [process.execPath, '--check', 'receiver-express/receiver.js'],
    ]) {
      const { status, stderr } = spawnSync(command[0]!, command.slice(1), {
        cwd: EXAMPLES,
        encoding: 'utf8',
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    }
  });

  it('has a configuration that loads', () => {
    const blocks = codeBlocksOf(readDocument('examples/fastapi/README.md'));
    const yaml = blocks.find(({ language }) => language === 'yaml');
    const { apps } = parse(yaml!.text) as { apps: object };
    const env = { AFTERWORD_APPS: JSON.stringify(apps) };
    const { config, warnings } = loadConfig({ file: CONFIG, env, cwd: EXAMPLES });
    expect(warnings).toEqual([]);
    expect(config.apps.get(PROJECT)?.get('orders')?.place).toMatchObject({
      process: { cwd: join(EXAMPLES, 'fastapi') },
    });
  });
});
