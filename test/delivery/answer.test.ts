import { randomBytes } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import type { Outcome } from '../../src/delivery/attempt.ts';
import { judgeOutcome } from '../../src/delivery/outcome.ts';
import {
  attemptOn,
  attemptOnce,
  attemptToTheDeadline,
  expectAllClosed,
  openSender,
} from '../support/attempts.ts';
import { expectUntouched, hostile, says, startHostile, startReceiver } from '../support/receivers.ts';

describe('a hostile receiver', () => {
  const small = { bytes: Buffer.from('{}') };
  const large = { bytes: Buffer.alloc(32 * 1024 * 1024) };

  it.each([
    ['neverAnswers', small],
    ['neverReads', large],
    ['tricklesTheStatusLine', small],
  ] as const)('that %s runs into the deadline', async (behaviour, body) => {
    await using receiver = await startHostile(hostile[behaviour]);
    const outcome = await attemptToTheDeadline(receiver, () => receiver.connections > 0, body);
    expect(outcome).toMatchObject({ error: 'timeout', timings: { totalMs: 1_000 } });
    await expectAllClosed(receiver);
  });

  it('that trickles the body has given its status', async () => {
    await using receiver = await startHostile(hostile.tricklesTheBody);
    const sent = () => [...receiver.sockets].some(socket => socket.bytesWritten > 60);
    const outcome = await attemptToTheDeadline(receiver, sent, small);
    expect(outcome).toMatchObject({ status: 200 });
    expect(outcome.error).toBeUndefined();
    expect(Buffer.from(outcome.excerpt!).toString()).toMatch(/^y+$/);
    await expectAllClosed(receiver);
  });

  it.each([
    ['closesAfterReading', 'connection_closed'],
    ['closesInTheHeaders', 'connection_closed'],
    ['resetsAtOnce', 'connection_reset'],
    ['resetsAfterReading', 'connection_reset'],
    ['resetsInTheHeaders', 'connection_reset'],
    ['speaksGarbage', 'invalid_answer'],
    ['greetsLikeMail', 'invalid_answer'],
    ['switchesProtocols', 'invalid_answer'],
    ['contradictsItself', 'invalid_answer'],
    ['floodsTheReasonPhrase', 'invalid_answer'],
    ['floodsTheHeaders', 'invalid_answer'],
    ['floodsInterimAnswers', 'invalid_answer'],
    ['startsAnEndlessInterimAnswer', 'invalid_answer'],
  ] as const)('that %s makes it %s', async (behaviour, error) => {
    await using receiver = await startHostile(hostile[behaviour]);
    const outcome = await attemptOnce(receiver);
    expect(outcome).toMatchObject({ error });
    expect(outcome.status).toBeUndefined();
    expect(judgeOutcome(outcome)).toBe('retry');
    expect(receiver.connections).toBe(1);
  });

  it('that closes at once is a lost connection', async () => {
    await using receiver = await startHostile(hostile.closesAtOnce);
    // Which of the two depends on whether it had our bytes by then.
    expect(['connection_closed', 'connection_reset']).toContain((await attemptOnce(receiver)).error);
  });

  it.each(['floodsTheBody', 'floodsChunkExtensions'] as const)(
    'that %s is cut off early, and its status stands',
    async behaviour => {
      let written = 0;
      await using receiver = await startHostile(socket => {
        socket.on('close', () => (written = socket.bytesWritten));
        hostile[behaviour](socket);
      });
      const memory = process.memoryUsage().rss;
      const outcome = await attemptOnce(receiver);
      expect(outcome).toMatchObject({ status: 200 });
      await vi.waitFor(() => expect(written).toBeGreaterThan(0), { timeout: 10_000, interval: 5 });
      // What the buffers of the system hold on both sides, and not the 10 GB.
      expect(written).toBeLessThan(32 * 1024 * 1024);
      expect(process.memoryUsage().rss - memory).toBeLessThan(64 * 1024 * 1024);
    },
  );
});

describe('the answer', () => {
  const answerOf = async (...pieces: string[]) => {
    await using receiver = await startHostile(says(...pieces));
    return await attemptOnce(receiver);
  };
  const text = ({ excerpt }: Outcome) => Buffer.from(excerpt ?? []).toString();

  it.each([
    ['100, then 200', ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok']],
    ['100 apart', ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok']],
    [
      '102 and 103',
      [
        'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
      ],
    ],
    [
      'every byte apart',
      'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'.split(
        '',
      ),
    ],
  ])('is not an interim one: %s', async (_what, pieces) => {
    const outcome = await answerOf(...pieces);
    expect(outcome.status).toBe(200);
    expect(text(outcome)).toBe('ok');
  });

  it('is not an interim one even where no other follows', async () => {
    await using receiver = await startHostile(socket => {
      socket.once('data', () => socket.end('HTTP/1.1 100 Continue\r\n\r\n'));
      socket.resume();
    });
    expect(await attemptOnce(receiver)).toMatchObject({ error: 'connection_closed' });
  });

  it('counts by its status when it is cut off before its end', async () => {
    await using receiver = await startHostile(socket => {
      socket.once('data', () => socket.end('HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf'));
      socket.resume();
    });
    const outcome = await attemptOnce(receiver);
    expect([outcome.status, text(outcome)]).toEqual([201, 'half']);
  });

  it('is kept as it came, however it is framed', async () => {
    expect(
      text(
        await answerOf(
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
          '1\r\nd\r\n0\r\n\r\n',
        ),
      ),
    ).toBe('abcd');
    expect(
      text(await answerOf('HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nraw')),
    ).toBe('raw');
    expect((await answerOf('HTTP/1.1 204 No Content\r\n\r\n')).excerpt).toBeUndefined();
  });

  it('is kept with its headers, not with those of interim ones', async () => {
    const { headers } = await answerOf(
      'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 429 Slow\r\nDate: today\r\nretry-after:  7 \r\n',
      'Server: a\r\nX-Ray: \xff\r\nServer: b\r\nContent-Length: 0\r\n\r\n',
    );
    expect(headers).toBe('retry-after: 7\nServer: a\nX-Ray: ÿ\nServer: b\nContent-Length: 0');
  });

  it('has no headers where there is none', async () => {
    await using receiver = await startHostile(hostile.closesInTheHeaders);
    expect(await attemptOnce(receiver)).not.toHaveProperty('headers');
    expect(await answerOf('HTTP/1.1 204 No Content\r\n\r\n')).not.toHaveProperty('headers');
  });

  it('is excerpted to its first 4 KiB, in memory of its own', async () => {
    const body = randomBytes(50_000);
    await using receiver = await startReceiver((_received, response) => response.end(body));
    const { excerpt } = await attemptOnce(receiver);
    expect(Buffer.from(excerpt!).equals(body.subarray(0, 4_096))).toBe(true);
    expect(excerpt!.buffer.byteLength).toBe(4_096);
  });

  it.each([
    [65_536, 1],
    [65_537, 2],
  ])('of %i bytes makes it %i connections for two attempts', async (size, connections) => {
    await using receiver = await startReceiver((_received, response) => response.end(Buffer.alloc(size)));
    await using sender = openSender();
    for (const number of [1, 2]) {
      expect((await sender.send(attemptOn(receiver.url, { number }))).status).toBe(200);
    }
    expect(receiver.connections).toBe(connections);
  });

  it.each([301, 302, 303, 307, 308])('with %i is not followed', async status => {
    await using canary = await startReceiver();
    for (const location of [canary.url, 'http://169.254.169.254/latest/meta-data/']) {
      await using receiver = await startReceiver((_received, response) => {
        response.writeHead(status, { location }).end();
      });
      expect(await attemptOnce(receiver)).toMatchObject({ status });
      expect(receiver.requests.length).toBe(1);
    }
    await expectUntouched(canary);
  });
});
