import { createHmac, randomBytes } from 'node:crypto';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  attemptOn,
  attemptOnce,
  attemptToTheDeadline,
  expectAllClosed,
  openSender,
} from '../support/attempts.ts';
import { hostile, startHostile, startReceiver } from '../support/receivers.ts';

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

  it('stops at the deadline when the receiver does not read', async () => {
    await using receiver = await startHostile(hostile.neverReads);
    const file = await fileOf(bytes);
    const large = 64 * 1024 * 1024;
    await truncate(file, large);
    const outcome = await attemptToTheDeadline(receiver, () => receiver.connections > 0, {
      file,
      size: large,
    });
    expect(outcome).toMatchObject({ error: 'timeout' });
    await expectAllClosed(receiver);
  });
});
