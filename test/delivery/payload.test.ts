import { createHmac, randomBytes } from 'node:crypto';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Body } from '../../src/store/store.ts';
import {
  attemptOn,
  attemptOnce,
  attemptToTheDeadline,
  expectAllClosed,
  openSender,
} from '../support/attempts.ts';
import { ManualClock } from '../support/clock.ts';
import { hostile, startHostile, startReceiver } from '../support/receivers.ts';

const SOON = { timeout: 10_000, interval: 5 };

describe('a body in a file', () => {
  const size = 5 * 1024 * 1024 + 3;
  const bytes = randomBytes(size);
  const secret = Buffer.from('s3cret');
  let directory: string;

  async function fileOf(content: Buffer): Promise<string> {
    directory = await mkdtemp(join(tmpdir(), 'afterword-body-'));
    const file = join(directory, 'body');
    await writeFile(file, content);
    return file;
  }

  afterEach(() => rm(directory, { recursive: true }));

  it('is streamed whole, signed, with its length', async () => {
    await using receiver = await startReceiver();
    const body = { file: await fileOf(bytes), size };
    const outcome = await attemptOnce(receiver, { body, confidential: { secret } });
    const [request] = receiver.requests;
    const timestamp = String(request!.headers['x-service-webhook-timestamp']);
    const expected = createHmac('sha256', secret).update(`run-1.${timestamp}.`).update(bytes).digest('hex');
    expect(outcome.status).toBe(200);
    expect(request!.body.equals(bytes)).toBe(true);
    expect(request!.headers['content-length']).toBe(String(size));
    expect(request!.headers['x-service-webhook-signature']).toBe(`v1,${expected}`);
  });

  it('keeps the connection', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    const body = { file: await fileOf(bytes), size };
    for (const number of [1, 2]) await sender.send(attemptOn(receiver.url, { body, number }));
    expect([receiver.requests.length, receiver.connections]).toEqual([2, 1]);
  });

  it.each([
    ['is gone', (file: string) => rm(file)],
    ['is too short', (file: string) => truncate(file, 1_000)],
  ])('that %s is missing, and nothing is sent', async (_what, spoil) => {
    await using receiver = await startReceiver();
    const file = await fileOf(bytes);
    await spoil(file);
    for (const confidential of [{}, { secret }]) {
      const outcome = await attemptOnce(receiver, { body: { file, size }, confidential });
      expect(outcome).toMatchObject({ error: 'body_missing' });
    }
    expect(receiver.connections).toBe(0);
  });

  it('that shrinks while it is sent is missing', async () => {
    const file = await fileOf(bytes);
    // Reads on only once the file is cut, having read far less than it holds.
    await using receiver = await startHostile(socket => {
      void truncate(file, 4 * 1024 * 1024).then(() => socket.resume());
    });
    expect(await attemptOnce(receiver, { body: { file, size } })).toMatchObject({ error: 'body_missing' });
  });

  it('that cannot be read at present withholds the attempt, before a connection is opened', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    const file = dirname(await fileOf(bytes));
    for (const confidential of [{}, { secret }]) {
      const request = attemptOn(receiver.url, { body: { file, size: 1 }, confidential });
      expect(await sender.attempt(request)).toEqual({ withheld: 'body_unreadable' });
    }
    expect(receiver.connections).toBe(0);
  });
});

describe('a body in pieces', () => {
  const secret = Buffer.from('s3cret');
  const whole = randomBytes(3 * 1024 * 1024 + 5);
  const away = () => new Error('the store is away');

  /** Pieces of the body, from its beginning each time; `fault` comes where the piece of that number would. */
  async function* cut(fault?: (piece: number) => Error | undefined): AsyncGenerator<Uint8Array> {
    const size = 1024 * 1024;
    for (let start = 0, piece = 0; start < whole.length; start += size, piece += 1) {
      const error = fault?.(piece);
      if (error !== undefined) throw error;
      yield whole.subarray(start, start + size);
    }
  }

  const body = (fault?: (piece: number) => Error | undefined): Body => ({
    size: whole.length,
    pieces: () => cut(fault),
  });

  it('is signed and sent as it is, on one connection', async () => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    for (const number of [1, 2]) {
      const outcome = await sender.send(
        attemptOn(receiver.url, { body: body(), number, confidential: { secret } }),
      );
      expect(outcome.status).toBe(200);
    }
    for (const { headers, body: received } of receiver.requests) {
      const timestamp = String(headers['x-service-webhook-timestamp']);
      const digest = createHmac('sha256', secret).update(`run-1.${timestamp}.`).update(whole).digest('hex');
      expect(received.equals(whole)).toBe(true);
      expect(headers['content-length']).toBe(String(whole.length));
      expect(headers['x-service-webhook-signature']).toBe(`v1,${digest}`);
    }
    expect([receiver.requests.length, receiver.connections]).toEqual([2, 1]);
  });

  it.each([
    ['no piece', 0, whole.length, 0],
    ['a piece too few', 2, whole.length, 1],
    ['bytes too many', 9, whole.length - 1, 1],
  ])('with %s is missing', async (_what, count, size, connections) => {
    await using receiver = await startReceiver();
    async function* pieces() {
      let index = 0;
      for await (const piece of cut()) {
        if (index === count) return;
        index += 1;
        yield piece;
      }
    }
    expect(await attemptOnce(receiver, { body: { size, pieces } })).toMatchObject({ error: 'body_missing' });
    expect([receiver.requests.length, receiver.connections]).toEqual([0, connections]);
  });

  it.each([
    ['the first piece', 0, {}],
    ['a later piece', 2, {}],
    ['a piece to sign', 1, { secret }],
  ])('that fails at %s withholds the attempt', async (_what, at, confidential) => {
    await using receiver = await startReceiver();
    await using sender = openSender();
    const failing = body(piece => (piece === at ? away() : undefined));
    const request = attemptOn(receiver.url, { body: failing, confidential });
    expect(await sender.attempt(request)).toEqual({ withheld: 'body_unreadable' });
    expect(receiver.requests).toEqual([]);
  });

  it.each([
    ['the first piece', 0, {}],
    ['a later piece', 2, {}],
    ['a piece to sign', 1, { secret }],
  ])(
    'that hangs at %s withholds the attempt at the deadline, and is let go',
    async (_what, at, confidential) => {
      await using receiver = await startReceiver();
      const clock = new ManualClock();
      await using sender = openSender({ clock, timeout: 1_000 });
      const hanging = Promise.withResolvers<void>();
      let isHanging = false;
      let open = 0;
      async function* pieces() {
        open += 1;
        try {
          let index = 0;
          for await (const piece of cut()) {
            isHanging = index === at;
            if (isHanging) await hanging.promise;
            index += 1;
            yield piece;
          }
        } finally {
          open -= 1;
        }
      }
      const request = attemptOn(receiver.url, { body: { size: whole.length, pieces }, confidential });
      const attempted = sender.attempt(request);
      await vi.waitFor(() => expect(isHanging).toBe(true), SOON);
      clock.advance(1_000);
      expect(await attempted).toEqual({ withheld: 'body_unreadable' });
      hanging.resolve();
      await vi.waitFor(() => expect(open).toBe(0), SOON);
      expect(receiver.requests).toEqual([]);
    },
  );

  it('is read no faster than the receiver takes it, and stops at the deadline', async () => {
    await using receiver = await startHostile(hostile.neverReads);
    const piece = Buffer.alloc(1024 * 1024);
    const size = 256 * piece.length;
    let read = 0;
    async function* pieces() {
      for (; read < 256; read += 1) yield piece;
    }
    const outcome = await attemptToTheDeadline(receiver, () => receiver.connections > 0 && read > 0, {
      size,
      pieces,
    });
    expect(outcome).toMatchObject({ error: 'timeout' });
    expect(read).toBeLessThan(128);
    await expectAllClosed(receiver);
  });
});
