/**
 * Several workers on one machine with a database: each is a node of its own, and the primary has no store.
 */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { untilEnded, untilNoneAlive } from '../support/alive.ts';
import { openApp } from '../support/app.ts';
import { openInbox } from '../support/inbox.ts';
import { configureNode, openRecords } from '../support/nodes.ts';
import { createDatabase } from '../support/postgres.ts';
import { readMetric } from '../support/process.ts';
import { serveWorkers } from '../support/workers.ts';

vi.setConfig({ testTimeout: 60_000 }); // three processes and more to start

const SOON = { timeout: 30_000, interval: 20 };

describe('two workers with a database', () => {
  it('send what they have taken, and what a killed one leaves behind', async () => {
    const database = await createDatabase();
    const app = await openApp((_req, res) => res.end('done'));
    onTestFinished(() => app.close());
    let answering = false;
    const inbox = await openInbox(() => (answering ? 200 : 404));
    onTestFinished(() => inbox.close());
    const place = configureNode(database, {
      apps: { app: { runtime: 'custom', url: app.url } },
      more: { workers: 2 },
    });
    const rig = await serveWorkers(place);
    const one = await rig.onlyOn(1, () => rig.call('app/', inbox.url));
    const other = await rig.onlyOn(2, () => rig.call('app/', inbox.url));
    expect([one.status, other.status]).toEqual([200, 200]);
    await inbox.count(2);

    const dead = rig.pidOf(1);
    process.kill(dead, 'SIGKILL');
    answering = true;
    await untilEnded(dead);
    await rig.successorOf(dead, 1);
    const records = await openRecords(place);
    await vi.waitFor(async () => {
      for (const answer of [one, other]) {
        expect(await records.find(answer.header('x-request-id')!)).toMatchObject({ state: 'delivered' });
      }
      expect(await readMetric(rig.addresses, 'deliveries_held')).toBe(0);
    }, SOON);
    expect(inbox.received.length).toBeGreaterThanOrEqual(4);
    expect(await rig.service.stop()).toEqual({ code: 0, signal: null });
    await untilNoneAlive(rig.mark);
  });

  it('take no calls where their role is to send alone, and are ready all the same', async () => {
    const database = await createDatabase();
    const place = configureNode(database, { more: { workers: 2, role: 'dispatcher' } });
    const rig = await serveWorkers(place);
    expect((await fetch(`${rig.addresses.admin}/readyz`)).status).toBe(200);
    expect(rig.addresses.port).toBeNaN();
    expect(await rig.service.stop()).toEqual({ code: 0, signal: null });
  });
});
