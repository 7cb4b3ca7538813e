/**
 * Nodes of different roles on one database, each built from a configuration as an operator writes it: one
 * takes calls, another sends their deliveries.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Role } from '../src/config/config.ts';
import { loadConfig } from '../src/config/load.ts';
import { createService, type Service } from '../src/service.ts';
import { temporaryDirectory } from './store/samples.ts';
import { type Inbox, openInbox, signatureOf } from './support/inbox.ts';
import { captureLog, type LogLine } from './support/log.ts';
import { createDatabase, type Database } from './support/postgres.ts';
import { JWT_SECRET, PROJECT, testToken } from './support/service.ts';
import { openStage } from './support/stage.ts';
import { until } from './support/waiting.ts';

const SECRET = 'the secret of the caller';
const [OLD_KEY, NEW_KEY] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];

interface Setup {
  readonly database: Database;
  readonly role: Role;
  readonly appUrl: string;
  readonly keys?: string;
}

interface TestNode {
  readonly service: Service;
  readonly base: string | undefined;
  readonly admin: string;
  readonly data: string;
  readonly lines: readonly LogLine[];
}

async function startNode({ database, role, appUrl, keys = OLD_KEY }: Setup): Promise<TestNode> {
  const data = temporaryDirectory();
  const { config } = loadConfig({
    cwd: data,
    env: {
      AFTERWORD_LISTEN: '127.0.0.1:0',
      AFTERWORD_ADMIN: '127.0.0.1:0',
      AFTERWORD_DATA: data,
      AFTERWORD_DATABASE: database.url,
      AFTERWORD_ROLE: role,
      AFTERWORD_ENCRYPTION_KEY: keys,
      AFTERWORD_PROJECTS: JSON.stringify({ [PROJECT]: { jwt: { secret: JWT_SECRET } } }),
      AFTERWORD_APPS: JSON.stringify({ [`${PROJECT}/web`]: { runtime: 'custom', url: appUrl } }),
      AFTERWORD_WEBHOOKS_ALLOW_TARGETS: '127.0.0.0/8',
    },
  });
  const { log, lines } = captureLog();
  const service = createService({ config, version: '0.0.0-test', log });
  onTestFinished(() => service.stop());
  const { listen, admin } = await service.start();
  const base = listen && `http://127.0.0.1:${listen.port}`;
  return { service, base, admin: `http://127.0.0.1:${admin.port}`, data, lines };
}

/** Calls the app, and gives the answer with its run. */
async function call(
  { base }: TestNode,
  path: string,
  inbox: Inbox,
): Promise<{ runId: string; body: Buffer }> {
  const url = `${base}/v4/${PROJECT}/web/${path}?webhookEndpoint=${encodeURIComponent(inbox.url)}`;
  const headers = { authorization: `Bearer ${await testToken()}`, 'x-webhook-secret': SECRET };
  const answer = await fetch(url, { headers });
  expect(answer.status).toBe(200);
  return {
    runId: answer.headers.get('x-request-id')!,
    body: Buffer.from(await answer.arrayBuffer()),
  };
}

async function attemptsOf({ admin }: TestNode): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text();
  const counts = [...text.matchAll(/^afterword_attempts_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function openWorld() {
  const [database, app, inbox] = await Promise.all([createDatabase(), openStage(), openInbox()]);
  onTestFinished(() => app.close());
  onTestFinished(() => inbox.close());
  return { database, app, inbox, appUrl: app.url };
}

it('a gateway takes calls and a dispatcher sends their deliveries', async () => {
  const { app, inbox, ...shared } = await openWorld();
  const gateway = await startNode({ ...shared, role: 'gateway' });
  const dispatcher = await startNode({ ...shared, role: 'dispatcher' });
  expect(dispatcher.base).toBeUndefined();
  const ready = [gateway, dispatcher].map(({ lines }) => lines.find(({ msg }) => msg === 'ready'));
  expect(ready).toEqual([
    expect.objectContaining({ role: 'gateway', listen: expect.any(String) }),
    expect.objectContaining({ role: 'dispatcher', node: expect.stringContaining(`-${process.pid}-`) }),
  ]);
  expect(ready[1]).not.toHaveProperty('listen');

  const path = app.play((_req, res) => res.end('hello'));
  const { runId } = await call(gateway, path, inbox);
  const delivery = await inbox.of(runId);
  expect(delivery.headers['x-service-webhook-signature']).toBe(signatureOf(delivery, SECRET));
  await until(async () => (await attemptsOf(dispatcher)) === 1);
  expect(await attemptsOf(gateway)).toBe(0);
  for (const { admin } of [gateway, dispatcher]) expect((await fetch(`${admin}/readyz`)).status).toBe(200);
});

it('a delivery waits in the database for a dispatcher, which opens what an older key sealed', async () => {
  const { app, inbox, ...shared } = await openWorld();
  const gateway = await startNode({ ...shared, role: 'gateway' });
  const path = app.play((_req, res) => res.end('hello'));
  const { runId } = await call(gateway, path, inbox);
  await gateway.service.stop();
  expect(inbox.received).toEqual([]);

  await startNode({ ...shared, role: 'dispatcher', keys: `${NEW_KEY},${OLD_KEY}` });
  const delivery = await inbox.of(runId);
  expect(delivery.headers['x-service-webhook-signature']).toBe(signatureOf(delivery, SECRET));
});

it('a long answer goes through a folder of scratch files, which goes with the process', async () => {
  const { app, inbox, ...shared } = await openWorld();
  const gateway = await startNode({ ...shared, role: 'gateway' });
  const dispatcher = await startNode({ ...shared, role: 'dispatcher' });
  const long = randomBytes(3_000_000);
  const path = app.play((_req, res) => res.end(long));
  const { runId, body } = await call(gateway, path, inbox);
  expect(body.equals(long)).toBe(true);

  const { result } = JSON.parse((await inbox.of(runId)).body.toString()) as { result: string };
  expect(Buffer.from(result, 'base64').equals(long)).toBe(true);
  const [folder, ...others] = readdirSync(join(gateway.data, 'scratch'));
  expect(others).toEqual([]);
  await until(() => readdirSync(join(gateway.data, 'scratch', folder!)).length === 0);
  for (const { service, data } of [gateway, dispatcher]) {
    await service.stop();
    expect(readdirSync(join(data, 'scratch'))).toEqual([]);
  }
});

it('nodes of the role all take calls, and each sends what it took', async () => {
  const { app, inbox, ...shared } = await openWorld();
  const nodes = [await startNode({ ...shared, role: 'all' }), await startNode({ ...shared, role: 'all' })];
  const path = app.play((_req, res) => res.end('hello'));
  for (const node of nodes) {
    const { runId } = await call(node, path, inbox);
    expect((await inbox.of(runId)).body.toString()).toContain('"result":"hello"');
    await until(async () => (await attemptsOf(node)) === 1);
  }
});
