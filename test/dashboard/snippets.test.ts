/**
 * The receivers that the page gives out, run as programs: they accept what the service signs, and nothing else.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, it } from 'vitest';
import { SNIPPETS } from '../../dashboard/src/snippets.ts';
import { serviceSignature, signDelivery } from '../../src/delivery/signature.ts';

const SECRET = 'grün';
const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const BODY = Buffer.from(`{"run_id":"${ID}","result":{"greeting":"hé"}}`);
const TIMESTAMP = 1_700_000_000;

const folder = mkdtempSync(join(tmpdir(), 'snippets-'));
afterAll(() => rmSync(folder, { recursive: true }));

function headersBy(secret: string): Record<string, string> {
  const input = { secret: Buffer.from(secret), requestId: ID, timestamp: TIMESTAMP, body: BODY };
  return {
    'X-Request-Id': ID,
    'X-Service-Webhook-Timestamp': `${TIMESTAMP}`,
    'X-Service-Webhook-Signature': serviceSignature(signDelivery(input)),
  };
}

const { 'X-Service-Webhook-Signature': _, ...unsigned } = headersBy(SECRET);

const CASES = [
  { name: 'genuine', headers: headersBy(SECRET), body: BODY, status: 204 },
  { name: 'of another secret', headers: headersBy('other'), body: BODY, status: 401 },
  { name: 'altered', headers: headersBy(SECRET), body: Buffer.concat([BODY, Buffer.from(' ')]), status: 401 },
  { name: 'not signed', headers: unsigned, body: BODY, status: 401 },
];

const PROGRAMS = [
  { name: 'Node', file: 'receiver.mjs', command: process.execPath },
  { name: 'Python', file: 'receiver.py', command: 'python3' },
] as const;

const isThere = (command: string): boolean => spawnSync(command, ['--version']).status === 0;

for (const { name, file, command } of PROGRAMS) {
  const place = (): string => {
    const path = join(folder, file);
    writeFileSync(path, SNIPPETS[name]);
    return path;
  };

  // There may be no Python where this runs.
  it.skipIf(!isThere(command))(
    `the receiver for ${name} accepts what is genuine and nothing else`,
    async () => {
      const receiver = spawn(command, [place()], {
        env: { ...process.env, WEBHOOK_SECRET: SECRET, PORT: '0', PYTHONUTF8: '1' },
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      try {
        const [line] = (await once(createInterface(receiver.stdout), 'line')) as [string];
        const port = /^listening on (\d+)$/.exec(line)![1];
        for (const { headers, body, status } of CASES) {
          const answer = await fetch(`http://127.0.0.1:${port}/hook`, { method: 'POST', headers, body });
          expect(answer.status).toBe(status);
        }
      } finally {
        receiver.kill();
        await once(receiver, 'exit');
      }
    },
  );

  it.skipIf(!isThere(command))(`the receiver for ${name} does not start without a secret`, () => {
    const env = { ...process.env, WEBHOOK_SECRET: '', PORT: '0' };
    const { status, stderr } = spawnSync(command, [place()], { env, encoding: 'utf8', timeout: 10_000 });
    expect(status).toBe(1);
    expect(stderr).toContain('WEBHOOK_SECRET');
  });
}
