/**
 * Nodes with a role each, on one database: gateways that only take calls, and a dispatcher that only sends.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { openApp } from './support/app.ts';
import { callRaw } from './support/caller.ts';
import { openInbox } from './support/inbox.ts';
import { configureNode, openRecords } from './support/nodes.ts';
import { createDatabase } from './support/postgres.ts';
import { readMetric, serve } from './support/process.ts';
import { PROJECT, testToken } from './support/service.ts';

const CALLS = 20;

async function callTimes(port: number, target: string): Promise<string[]> {
  const request = {
    port,
    path: `/v4/${PROJECT}/app/x?webhookEndpoint=${encodeURIComponent(target)}`,
    headers: [`Authorization: Bearer ${await testToken()}`, 'X-Webhook-Secret: shared by the nodes'],
  };
  const answers = await Promise.all(Array.from({ length: CALLS }, () => callRaw(request)));
  expect(answers.map(({ status }) => status)).toEqual(Array(CALLS).fill(200));
  return answers.map(answer => answer.header('x-request-id')!);
}

describe('two gateways and a dispatcher', () => {
  it('share the work: what either gateway takes, the dispatcher sends', async () => {
    const database = await createDatabase();
    const app = await openApp((_, res) => res.end('done'));
    const inbox = await openInbox();
    onTestFinished(async () => {
      await app.close();
      await inbox.close();
    });
    const apps = { app: { runtime: 'custom', url: app.url } } as const;
    const place = (role: string) => configureNode(database, { apps, more: { role } });
    const places = [place('gateway'), place('gateway'), place('dispatcher')];
    const processes = places.map(each => serve(each));
    const [one, other, dispatcher] = await Promise.all(processes.map(({ ready }) => ready));

    const runIds = [...(await callTimes(one!.port, inbox.url)), ...(await callTimes(other!.port, inbox.url))];
    await Promise.all(runIds.map(runId => inbox.of(runId)));
    expect(inbox.received).toHaveLength(2 * CALLS);
    for (const gateway of [one!, other!]) expect(await readMetric(gateway, 'deliveries_held')).toBe(0);
    expect(dispatcher!.port).toBeNaN();

    const endings = await Promise.all(processes.map(process => process.stop()));
    expect(endings).toEqual(processes.map(() => ({ code: 0, signal: null })));
    const records = await openRecords(places[0]!);
    for (const runId of runIds) expect(await records.find(runId)).toMatchObject({ state: 'delivered' });
  });
});
