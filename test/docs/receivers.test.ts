/**
 * The snippets of docs/receivers.md: those that need nothing else are run against signed requests, those for
 * a framework are at least TypeScript and import nothing but that framework.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const SECRET = 'grün';
const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const BODY = `{"run_id":"${ID}","result":{"greeting":"hé"}}`;

const snippets = new Map(
  [
    ...readFileSync(join(ROOT, 'docs', 'receivers.md'), 'utf8').matchAll(/^```\w+ file=(\S+)\n(.*?)^```$/gms),
  ].map(([, file, text]) => [file!, text!]),
);

const folder = mkdtempSync(join(tmpdir(), 'receivers-'));
afterAll(() => rmSync(folder, { recursive: true }));

function signedHeaders(body = BODY, secret = SECRET): Record<string, string> {
  const digest = createHmac('sha256', secret).update(`${ID}.1700000000.${body}`).digest('hex');
  return {
    'X-Request-Id': ID,
    'X-Service-Webhook-Timestamp': '1700000000',
    'X-Service-Webhook-Signature': `v1,${digest}`,
  };
}

/** A genuine delivery, one with another body than was signed, and one without a signature. */
const CASES = [
  { name: 'genuine', headers: signedHeaders(), body: BODY, genuine: true },
  { name: 'altered', headers: signedHeaders(), body: `${BODY} `, genuine: false },
  { name: 'signed with another secret', headers: signedHeaders(BODY, 'other'), body: BODY, genuine: false },
  { name: 'not signed', headers: { 'X-Request-Id': ID }, body: BODY, genuine: false },
];

/** Writes a snippet to a file of its own, importing the checkout in place of the package. */
function place(file: string, text = snippets.get(file)!): string {
  const path = join(folder, file);
  const verify = pathToFileURL(join(ROOT, 'src', 'verify.ts')).href;
  writeFileSync(path, text.replaceAll("'afterword/verify'", `'${verify}'`));
  return path;
}

/** Runs a handler from a snippet in a process of its own; tells the status of each case. */
function statusesOf(file: string, call: string): number[] {
  const caller = place(
    `call-${file}`,
    `import * as snippet from ${JSON.stringify(pathToFileURL(place(file)).href)};
    console.log = () => {};
    const statuses = [];
    for (const { headers, body } of ${JSON.stringify(CASES)}) {
      const request = new Request('http://receiver/hook', { method: 'POST', headers, body });
      statuses.push(await (${call})(request));
    }
    process.stdout.write(JSON.stringify(statuses));`,
  );
  const env = { ...process.env, WEBHOOK_SECRET: SECRET, NEW_SECRET: 'new', OLD_SECRET: SECRET };
  const { stdout, stderr } = spawnSync(process.execPath, [caller], { env, encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as number[];
}

describe('handlers', () => {
  it.each([
    ['receive.ts', 'async request => snippet.receive(request.headers, await request.arrayBuffer())', 200],
    [
      'fetch.ts',
      `async request => (await snippet.default.fetch(request, { WEBHOOK_SECRET: '${SECRET}' })).status`,
      204,
    ],
    ['next.ts', 'async request => (await snippet.POST(request)).status', 204],
    [
      'rotation.ts',
      `async request => snippet.verifyWithEither(request.headers, await request.arrayBuffer())
        .then(() => 200, error => error.name === 'VerificationError' ? 401 : 500)`,
      200,
    ],
  ])('%s accepts what is genuine and nothing else', (file, call, success) => {
    expect(statusesOf(file, call)).toEqual(CASES.map(({ genuine }) => (genuine ? success : 401)));
  });
});

it('the server for plain Node accepts what is genuine and nothing else', async () => {
  const onAnyPort = snippets
    .get('node.ts')!
    .replace('.listen(3000)', '.listen(0, () => console.log((server.address() as { port: number }).port))');
  const server = spawn(process.execPath, [place('node.ts', onAnyPort)], {
    env: { ...process.env, WEBHOOK_SECRET: SECRET },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [port] = (await once(createInterface(server.stdout), 'line')) as [string];
    for (const { headers, body, genuine } of CASES) {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body });
      expect(answer.status).toBe(genuine ? 204 : 401);
    }
  } finally {
    server.kill();
    await once(server, 'exit');
  }
});

it.skipIf(spawnSync('python3', ['--version']).status !== 0)('the Python function agrees', () => {
  place('verify.py');
  const program = `
import json, sys
from verify import is_genuine
cases = json.loads(sys.stdin.buffer.read())
print(json.dumps([is_genuine(c["headers"], c["body"].encode(), ${JSON.stringify(SECRET)}) for c in cases]))`;
  const { stdout, stderr } = spawnSync('python3', ['-B', '-X', 'utf8', '-c', program], {
    cwd: folder,
    input: JSON.stringify(CASES),
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual(CASES.map(({ genuine }) => genuine));
});

describe('frameworks', () => {
  it.each([['express'], ['fastify'], ['hono']])('%s', framework => {
    const text = snippets.get(`${framework}.ts`)!;
    const imported = [...text.matchAll(/^import .* from '(.+)';$/gm)].map(match => match[1]);
    expect(imported).toEqual(['afterword/verify', framework]);
    // Throws where it is not TypeScript.
    expect(stripTypeScriptTypes(text)).toContain('verifyDelivery({');
  });
});

it('every snippet is one of those above', () => {
  expect([...snippets.keys()].sort()).toEqual(
    ['express', 'fastify', 'fetch', 'hono', 'next', 'node', 'receive', 'rotation']
      .map(name => `${name}.ts`)
      .concat('verify.py')
      .sort(),
  );
});
