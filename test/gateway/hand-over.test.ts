/**
 * The end of a gateway whose calls another process takes from now on: no caller loses a call, and whoever
 * keeps a connection is told to come back on a new one.
 */
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { dial } from '../support/caller.ts';
import { until } from '../support/waiting.ts';
import { endingByHand } from './ending.ts';
import { openRig, type Rig, type RigOptions } from './rig.ts';

const GRACE_MS = 20_000;

/** A gateway, and a call that is answered at once or, at `/slow`, when the test says so. */
async function open(options: RigOptions = {}): Promise<{ rig: Rig; name: string; slow: ServerResponse[] }> {
  const rig = await openRig(options);
  const slow: ServerResponse[] = [];
  const name = rig.app.play((req, res) => {
    if (req.url!.endsWith('/slow')) slow.push(res);
    else res.end('answer');
  });
  return { rig, name, slow };
}

async function isRefused(port: number): Promise<boolean> {
  return dial(port).then(
    socket => {
      socket.destroy();
      return false;
    },
    () => true,
  );
}

describe('a hand-over', () => {
  it('answers the next call on a connection that was kept, and closes it then', async () => {
    const { rig, name } = await open();
    const caller = await rig.converse();
    caller.send(rig.head({ path: name }));
    await caller.until('answer');
    expect(caller.text).toMatch(/connection: keep-alive/i);

    const stopped = rig.stop(GRACE_MS, true);
    await until(() => isRefused(rig.port));
    const before = caller.text.length;
    caller.send(rig.head({ path: name }));
    const text = await caller.end();
    await stopped;
    expect(text.slice(before)).toMatch(/^HTTP\/1.1 200 .*connection: close.*answer/is);
    expect(caller.reset).toBe(false);
  });

  it('answers the first call on a connection that has had none', async () => {
    const { rig, name } = await open();
    const caller = await rig.converse();
    const stopped = rig.stop(GRACE_MS, true);
    await until(() => isRefused(rig.port));
    caller.send(rig.head({ path: name }));
    expect(await caller.end()).toMatch(/^HTTP\/1.1 200 .*connection: close.*answer/is);
    await stopped;
  });

  it('lets a call under way end, and answers the next one on its connection', async () => {
    const { rig, name, slow } = await open();
    const caller = await rig.converse();
    caller.send(rig.head({ path: `${name}/slow` }));
    await until(() => slow.length === 1);
    slow[0]!.write('half ');
    await caller.until('half');
    const stopped = rig.stop(GRACE_MS, true);
    await until(() => isRefused(rig.port));
    slow[0]!.end('and half');
    await caller.until('and half');
    const before = caller.text.length;
    caller.send(rig.head({ path: name }));
    const text = await caller.end();
    await stopped;
    expect(text.slice(before)).toMatch(/HTTP\/1.1 200 .*answer/is);
  });

  it('closes connections on which nobody calls any more, before its time is over', async () => {
    const { rig, name } = await open();
    const [unused, idle] = [await rig.converse(), await rig.converse()];
    idle.send(rig.head({ path: name }));
    await idle.until('answer');
    const began = performance.now();
    await rig.stop(GRACE_MS, true);
    await Promise.all([unused.end(), idle.end()]);
    expect(performance.now() - began).toBeLessThan(GRACE_MS);
    expect([unused.reset, idle.reset]).toEqual([false, false]);
  });

  it('lets a WebSocket go on, until its time is over', async () => {
    const { clock, end } = endingByHand(GRACE_MS);
    const { rig } = await open({ clock });
    const name = rig.raw.play(socket => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.pipe(socket);
    });
    const caller = await rig.converse();
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';
    caller.send(rig.head({ app: 'raw', path: name, headers: [...upgrade, key] }));
    await caller.until('101 Switching Protocols');
    const stopped = rig.stop(GRACE_MS, true);
    await until(() => isRefused(rig.port));
    caller.send('still there');
    await caller.until('still there');
    end();
    expect(await Promise.all([caller.end(), stopped])).toHaveLength(2);
  });
});
