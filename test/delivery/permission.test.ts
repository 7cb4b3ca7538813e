/** An attempt is sent only while it is permitted, which is asked as late as can be. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { attemptOn, openSender } from '../support/attempts.ts';
import { makeCertificate } from '../support/certificate.ts';
import { type Receiver, startHostile, startReceiver } from '../support/receivers.ts';

const NOT_PERMITTED = { withheld: 'not_permitted' };

/** A receiver that answers nothing of its own accord, and the bytes that reach it. */
async function startListening(then: (socket: Socket) => void = () => {}) {
  let bytes = 0;
  const receiver = await startHostile(socket => {
    socket.on('data', chunk => (bytes += chunk.length)).once('data', () => then(socket));
    socket.resume();
  });
  return Object.assign(receiver, { bytesReceived: () => bytes });
}

/** Whatever was on its way has arrived once the connection is closed. */
const allClosed = (receiver: Receiver) =>
  vi.waitFor(
    () => {
      expect(receiver.connections).toBeGreaterThan(0);
      expect(receiver.sockets.size).toBe(0);
    },
    { timeout: 10_000, interval: 5 },
  );

async function* pieces(count: number) {
  for (let piece = 0; piece < count; piece += 1) yield Buffer.from('piece');
}

const inPieces = (count: number) => ({ size: 5 * count, pieces: () => pieces(count) });

describe('on a new connection', () => {
  it('an attempt whose permission goes while it connects is withheld, and nothing is sent', async () => {
    await using receiver = await startListening();
    let isPermitted = true;
    const lookup = async () => {
      isPermitted = false;
      return ['127.0.0.1'];
    };
    await using sender = openSender({ lookup });
    const target = `http://receiver.example:${receiver.port}/`;
    expect(await sender.attempt(attemptOn(target, { permitted: () => isPermitted }))).toEqual(NOT_PERMITTED);
    await allClosed(receiver);
    expect(receiver.bytesReceived()).toBe(0);
  });

  it('the question comes after the handshake', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'afterword-permission-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const certificate = makeCertificate(directory, 'receiver.example');
    const authorities = tls.getCACertificates('default');
    tls.setDefaultCACertificates([certificate.cert]);
    onTestFinished(() => tls.setDefaultCACertificates(authorities));

    await using receiver = await startReceiver(200, { tls: certificate });
    await using sender = openSender();
    const connectionsWhenAsked: number[] = [];
    const permitted = () => connectionsWhenAsked.push(receiver.connections) < 0;
    expect(await sender.attempt(attemptOn(receiver.url, { permitted }))).toEqual(NOT_PERMITTED);
    await allClosed(receiver);
    expect(receiver.requests).toEqual([]);
    expect(connectionsWhenAsked).toEqual([1]);
  });
});

it('on a connection that was kept nothing is sent either, and later attempts go on', async () => {
  await using receiver = await startReceiver();
  await using sender = openSender();
  const send = (runId: string, isPermitted: boolean) =>
    sender.attempt(attemptOn(receiver.url, { runId, permitted: () => isPermitted }));
  expect(await send('first', true)).toMatchObject({ status: 200 });
  expect(await send('withheld', false)).toEqual(NOT_PERMITTED);
  expect(await send('last', true)).toMatchObject({ status: 200 });
  expect(receiver.requests.map(({ headers }) => headers['x-request-id'])).toEqual(['first', 'last']);
});

describe('a body in pieces', () => {
  it('is asked about before each of them', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    const permitted = vi.fn(() => true);
    const request = attemptOn(receiver.url, { body: inPieces(4), permitted });
    expect(await sender.attempt(request)).toMatchObject({ status: 200 });
    expect(permitted).toHaveBeenCalledTimes(1 + 4);
  });

  it('is not begun when the permission goes while it waits for its first piece to be sent', async () => {
    await using receiver = await startListening();
    await using sender = openSender();
    const permitted = vi.fn(() => false).mockReturnValueOnce(true);
    const request = attemptOn(receiver.url, { body: inPieces(4), permitted });
    expect(await sender.attempt(request)).toEqual(NOT_PERMITTED);
    await allClosed(receiver);
    expect(receiver.bytesReceived()).toBe(0);
  });

  it('is cut off when the permission goes in the middle', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    let asked = 0;
    const permitted = () => (asked += 1) <= 3;
    const request = attemptOn(receiver.url, { body: inPieces(4), permitted });
    expect(await sender.attempt(request)).toEqual(NOT_PERMITTED);
    await allClosed(receiver);
    expect(receiver.requests).toEqual([]);
  });

  it('that was answered before its end has been answered, whatever became of the permission', async () => {
    let isAnswered = false;
    await using receiver = await startListening(socket => {
      socket.write(
        'HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\nbeginning',
        () => (isAnswered = true),
      );
    });
    await using sender = openSender();
    async function* endless() {
      for (let after = 0; after < 50; after += isAnswered ? 1 : 0) {
        yield Buffer.from('piece');
        await setImmediate();
      }
      isPermitted = false;
      yield Buffer.from('piece');
    }
    let isPermitted = true;
    const request = attemptOn(receiver.url, {
      body: { size: 2 ** 30, pieces: endless },
      permitted: () => isPermitted,
    });
    expect(await sender.attempt(request)).toMatchObject({ status: 202 });
    expect(isPermitted).toBe(false);
  });
});
