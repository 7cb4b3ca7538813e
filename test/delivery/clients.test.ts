import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Answer } from '../../src/delivery/answer.ts';
import { createClients } from '../../src/delivery/clients.ts';
import { createDialer, systemLookup } from '../../src/delivery/connect.ts';
import { attemptOn, expectAllClosed, openSender, policyAllowing } from '../support/attempts.ts';
import { hostile, says, startHostile, startReceiver } from '../support/receivers.ts';

describe('connections', () => {
  it('are kept between attempts, one attempt at a time on each', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    for (let number = 1; number <= 5; number += 1) await sender.send(attemptOn(receiver.url));
    expect(receiver.connections).toBe(1);
    await Promise.all(Array.from({ length: 4 }, () => sender.send(attemptOn(receiver.url))));
    expect(receiver.connections).toBe(4);
    expect(receiver.requests.length).toBe(9);
  });

  it('are not kept where the receiver says so', async () => {
    await using receiver = await startReceiver((_received, response) => {
      response.writeHead(200, { connection: 'close' }).end();
    });
    await using sender = openSender();
    for (const number of [1, 2])
      expect((await sender.send(attemptOn(receiver.url, { number }))).status).toBe(200);
    expect(receiver.connections).toBe(2);
  });

  it('that the receiver has closed in the meantime are replaced', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    await sender.send(attemptOn(receiver.url));
    // Let the connection fall idle: one that closes in the very moment of reuse cannot be told from a lost answer.
    await setImmediate();
    for (const socket of receiver.sockets) socket.destroy();
    await expectAllClosed(receiver);
    expect((await sender.send(attemptOn(receiver.url))).status).toBe(200);
    expect([receiver.connections, receiver.requests.length]).toEqual([2, 2]);
  });

  it('that break in the middle do not make a second POST of one attempt', async () => {
    await using receiver = await startReceiver((_received, response) => {
      if (receiver.requests.length === 1) response.end();
      else response.socket?.destroy();
    });
    await using sender = openSender();
    await sender.send(attemptOn(receiver.url));
    const outcome = await sender.send(attemptOn(receiver.url));
    expect(['connection_closed', 'connection_reset']).toContain(outcome.error);
    expect(receiver.requests.length).toBe(2);
  });

  it('with an answer nobody asked for are not used again', async () => {
    const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    await using receiver = await startHostile(
      says(`${answer}HTTP/1.1 500 Injected\r\nContent-Length: 0\r\n\r\n`),
    );
    await using sender = openSender();
    for (const number of [1, 2])
      expect((await sender.send(attemptOn(receiver.url, { number }))).status).toBe(200);
    expect(receiver.connections).toBe(2);
  });

  it('on which the body was not read to its end are not used again', async () => {
    const answer = 'HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n';
    await using receiver = await startHostile(socket => socket.write(answer));
    await using sender = openSender();
    const body = { bytes: Buffer.alloc(32 * 1024 * 1024) };
    for (const number of [1, 2]) {
      expect((await sender.send(attemptOn(receiver.url, { body, number }))).status).toBe(413);
    }
    expect(receiver.connections).toBe(2);
  });

  it('are cut off by closing, and none is made after it', async () => {
    await using receiver = await startHostile(hostile.neverAnswers);
    const sender = openSender();
    const sending = sender.send(attemptOn(receiver.url));
    await vi.waitFor(() => expect(receiver.connections).toBe(1), { timeout: 10_000, interval: 5 });
    await sender.close();
    expect(await sending).toMatchObject({ error: 'interrupted' });
    expect(await sender.send(attemptOn(receiver.url))).toMatchObject({ error: 'interrupted' });
    await expectAllClosed(receiver);
    expect(receiver.connections).toBe(1);
  });

  it('that are idle are ended by closing', async () => {
    await using receiver = await startReceiver();
    const sender = openSender();
    await sender.send(attemptOn(receiver.url));
    expect(receiver.sockets.size).toBe(1);
    await sender.close();
    await expectAllClosed(receiver);
  });

  it('that stay idle are closed after about 4 s, even where the receiver would keep them longer', async () => {
    const answer = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 0\r\n\r\n';
    await using receiver = await startHostile(socket =>
      socket.on('data', () => socket.write(answer)).resume(),
    );
    await using sender = openSender();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      await sender.send(attemptOn(receiver.url));
      await setImmediate();
      vi.advanceTimersByTime(3_900);
      await sender.send(attemptOn(receiver.url));
      await setImmediate();
      expect(receiver.connections).toBe(1);
      vi.advanceTimersByTime(4_000);
    } finally {
      vi.useRealTimers();
    }
    await expectAllClosed(receiver);
  });

  it('are bounded while idle, the one unused for longest being closed first', async () => {
    await using one = await startReceiver();
    await using two = await startReceiver();
    const policy = policyAllowing('127.0.0.0/8');
    const dial = createDialer({ policy, lookup: systemLookup, clock: systemClock, timeout: 5_000 });
    const clients = createClients({ dial, maxIdle: 1 });
    for (const receiver of [one, two]) {
      const connection = clients.take(receiver.url);
      const answer = new Answer({ clock: systemClock, permitted: () => true });
      connection.client.dispatch({ method: 'POST', path: '/' }, answer);
      await answer.settled;
      clients.giveBack(connection);
    }
    await expectAllClosed(one);
    expect(two.sockets.size).toBe(1);
    await clients.close();
    await expectAllClosed(two);
  });
});
