import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls, { type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import {
  type ConnectTimings,
  createDialer,
  type Dial,
  type DialerOptions,
  type Lookup,
  systemLookup,
} from '../../src/delivery/connect.ts';
import { errorCode } from '../../src/delivery/outcome.ts';
import { attemptOn, expectAllClosed, openSender, policyAllowing } from '../support/attempts.ts';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import {
  closedPort,
  expectUntouched,
  type Receiver,
  startHostile,
  startReceiver,
} from '../support/receivers.ts';

const noLookup: Lookup = hostname => Promise.reject(new Error(`looked up ${hostname}`));

interface Dialled extends AsyncDisposable {
  readonly socket?: Socket;
  readonly code?: string;
  readonly timings: ConnectTimings;
}

type DialTo = Pick<Dial, 'hostname' | 'port'> & { readonly secure?: boolean; readonly signal?: AbortSignal };

async function dialWith(options: Partial<DialerOptions>, to: DialTo): Promise<Dialled> {
  const defaults = {
    policy: policyAllowing('127.0.0.0/8'),
    lookup: noLookup,
    clock: systemClock,
    timeout: 5_000,
  };
  const dialer = createDialer({ ...defaults, ...options });
  const timings: ConnectTimings = {};
  const { signal = new AbortController().signal } = to;
  const close = (socket?: Socket) => ({ [Symbol.asyncDispose]: async () => void socket?.destroy() });
  try {
    const socket = await dialer({ ...to, secure: to.secure ?? false, timings, signal });
    return { socket, timings, ...close(socket) };
  } catch (error) {
    return { code: errorCode(error), timings, ...close() };
  }
}

const answering =
  (...addresses: string[]): Lookup =>
  () =>
    Promise.resolve(addresses);

describe('a literal address', () => {
  it('is dialled without a look-up', async () => {
    await using receiver = await startHostile(() => {});
    await using dialled = await dialWith({}, { hostname: '127.0.0.1', port: receiver.port });
    expect(dialled.socket?.remoteAddress).toBe('127.0.0.1');
    expect(dialled.timings).toEqual({ connectMs: expect.any(Number) });
  });

  it.each(['127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '0.0.0.0'])(
    '%s is refused undialled',
    async hostname => {
      await using canary = await startHostile(() => {});
      await using dialled = await dialWith({ policy: policyAllowing() }, { hostname, port: canary.port });
      expect(dialled.code).toBe('blocked_target');
      await expectUntouched(canary);
    },
  );
});

describe('a host name', () => {
  it('is refused whole for one bad address among several, wherever it stands', async () => {
    await using canary = await startHostile(() => {});
    await using allowed = await startHostile(() => {}, { host: '127.0.0.2', port: canary.port });
    const policy = policyAllowing('127.0.0.2');
    const answers = [
      ['127.0.0.1', '127.0.0.2'],
      ['127.0.0.2', '127.0.0.1'],
      ['127.0.0.2', '::1'],
      ['127.0.0.2', '::ffff:127.0.0.1'],
    ];
    for (const addresses of answers) {
      await using dialled = await dialWith(
        { policy, lookup: answering(...addresses) },
        { hostname: 'receiver.example', port: canary.port },
      );
      expect(dialled.code).toBe('blocked_target');
    }
    await expectUntouched(canary);
    await expectUntouched(allowed);
  });

  it('is looked up once for a connection, and what was judged is what is dialled', async () => {
    await using canary = await startHostile(() => {});
    await using allowed = await startHostile(() => {}, { host: '127.0.0.2', port: canary.port });
    const lookup = vi.fn<Lookup>().mockResolvedValueOnce(['127.0.0.2']).mockResolvedValue(['127.0.0.1']);
    const options = { policy: policyAllowing('127.0.0.2'), lookup };
    const to = { hostname: 'rebinding.example', port: canary.port };

    await using first = await dialWith(options, to);
    expect(first.socket?.remoteAddress).toBe('127.0.0.2');
    expect(lookup).toHaveBeenCalledTimes(1);

    await using second = await dialWith(options, to);
    expect(second.code).toBe('blocked_target');
    await expectUntouched(canary);
    expect(allowed.connections).toBe(1);
  });

  it('that is allowed by name opens a private address', async () => {
    await using receiver = await startHostile(() => {});
    const options = { policy: policyAllowing('hooks.internal'), lookup: answering('127.0.0.1') };
    await using dialled = await dialWith(options, { hostname: 'hooks.internal', port: receiver.port });
    expect(dialled.socket).toBeDefined();
  });

  it('goes on to the next address when one does not connect', async () => {
    await using receiver = await startHostile(() => {}, { host: '127.0.0.2' });
    // Where nobody ever listens: on 127.0.0.1, another test may have the same port.
    const lookup = answering('127.0.0.3', '127.0.0.2');
    await using dialled = await dialWith({ lookup }, { hostname: 'receiver.example', port: receiver.port });
    expect(dialled.socket?.remoteAddress).toBe('127.0.0.2');
  });

  it('fails as its first address did when none connects', async () => {
    const lookup = answering('127.0.0.1', '255.255.255.255');
    const policy = policyAllowing('0.0.0.0/0');
    await using dialled = await dialWith(
      { lookup, policy },
      { hostname: 'receiver.example', port: await closedPort() },
    );
    expect(dialled.code).toBe('connection_refused');
    expect(dialled.timings).toEqual({ dnsMs: expect.any(Number), connectMs: expect.any(Number) });
  });

  it('without an address is not found', async () => {
    await using dialled = await dialWith({ lookup: answering() }, { hostname: 'receiver.example', port: 80 });
    expect(dialled.code).toBe('dns_not_found');
  });

  it('is looked up by the system unless told otherwise', async () => {
    expect(['127.0.0.1', '::1']).toEqual(expect.arrayContaining([...(await systemLookup('localhost'))]));
  });

  it('shares the look-ups that run at the same moment', async () => {
    await using receiver = await startHostile(() => {});
    const pending = Promise.withResolvers<readonly string[]>();
    const lookup = vi.fn<Lookup>(() => pending.promise);
    const clock = systemClock;
    const dialer = createDialer({ policy: policyAllowing('127.0.0.0/8'), lookup, clock, timeout: 5_000 });
    const dial = (hostname: string) =>
      dialer({
        hostname,
        port: receiver.port,
        secure: false,
        timings: {},
        signal: new AbortController().signal,
      });
    const dials = [dial('one.example'), dial('one.example'), dial('two.example')];
    expect(lookup.mock.calls).toEqual([['one.example'], ['two.example']]);
    pending.resolve(['127.0.0.1']);
    for (const socket of await Promise.all(dials)) socket.destroy();
    (await dial('one.example')).destroy();
    expect(lookup).toHaveBeenCalledTimes(3);
  });
});

describe('the socket', () => {
  it('is destroyed when its remote address is refused after all', async () => {
    await using receiver = await startHostile(socket => socket.resume());
    const judge = vi
      .fn()
      .mockReturnValueOnce({ allowed: true })
      .mockReturnValueOnce({ allowed: false, reason: 'not_global' });
    await using dialled = await dialWith(
      { policy: { judge } },
      { hostname: '127.0.0.1', port: receiver.port },
    );
    expect(dialled.code).toBe('blocked_target');
    expect(judge.mock.calls.map(([address]) => address)).toEqual(['127.0.0.1', '127.0.0.1']);
    await expectAllClosed(receiver);
  });

  it('is not opened once the attempt is over', async () => {
    await using canary = await startHostile(() => {});
    const controller = new AbortController();
    const lookup: Lookup = async () => {
      controller.abort(new Error('the deadline has passed'));
      return ['127.0.0.1'];
    };
    const to = { hostname: 'receiver.example', port: canary.port, signal: controller.signal };
    await using dialled = await dialWith({ lookup }, to);
    expect(dialled.code).toBe('other');
    await expectUntouched(canary);
  });

  it('leaves an address that keeps silent for the next, each having its share of the deadline', async () => {
    await using receiver = await startHostile(() => {}, { host: '127.0.0.2' });
    const limits: number[] = [];
    // The first limit runs out before any event of the network can arrive.
    const after: Clock['after'] = (ms, task) => {
      if (limits.push(ms) === 1) queueMicrotask(task);
      return () => {};
    };
    const options = {
      lookup: answering('127.0.0.1', '127.0.0.2'),
      clock: { ...systemClock, after },
      timeout: 1_000,
    };
    await using dialled = await dialWith(options, { hostname: 'receiver.example', port: receiver.port });
    expect(dialled.socket?.remoteAddress).toBe('127.0.0.2');
    expect(limits).toEqual([500, 500]);
  });

  it('that stays silent to the end is a timeout', async () => {
    const clock = {
      ...systemClock,
      after: (_ms: number, task: () => void) => (queueMicrotask(task), () => {}),
    };
    await using dialled = await dialWith({ clock }, { hostname: '127.0.0.1', port: await closedPort() });
    expect(dialled.code).toBe('timeout');
  });
});

describe('TLS', () => {
  let directory: string;
  let certificate: Certificate;
  const authorities = tls.getCACertificates('default');

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'afterword-tls-'));
    certificate = makeCertificate(directory, 'receiver.example');
  });

  afterAll(() => {
    tls.setDefaultCACertificates(authorities);
    rmSync(directory, { recursive: true });
  });

  const dialSecurely = (hostname: string, { port }: Receiver) =>
    dialWith({ lookup: answering('127.0.0.1') }, { hostname, port, secure: true });

  it('refuses a certificate that nobody vouches for', async () => {
    await using receiver = await startReceiver(200, { tls: certificate });
    await using dialled = await dialSecurely('receiver.example', receiver);
    expect(dialled.code).toBe('tls_invalid');
    await expectAllClosed(receiver);
  });

  it('refuses it even where the environment says to accept anything', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    await using receiver = await startReceiver(200, { tls: certificate });
    await using dialled = await dialSecurely('receiver.example', receiver);
    vi.unstubAllEnvs();
    expect(dialled.code).toBe('tls_invalid');
  });

  it('fails where the receiver speaks no TLS', async () => {
    await using receiver = await startHostile(socket =>
      socket.resume().write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    );
    await using dialled = await dialSecurely('receiver.example', receiver);
    expect(dialled.code).toBe('tls_failed');
  });

  it('is verified for the name or the address of the target, and speaks HTTP/1.1', async () => {
    tls.setDefaultCACertificates([...authorities, certificate.cert]);
    await using receiver = await startReceiver(200, { tls: certificate });

    for (const hostname of ['receiver.example', 'receiver.example.', '127.0.0.1']) {
      await using dialled = await dialSecurely(hostname, receiver);
      expect(dialled.code).toBeUndefined();
      expect((dialled.socket as TLSSocket).authorized).toBe(true);
      expect((dialled.socket as TLSSocket).alpnProtocol).toBe('http/1.1');
      expect(dialled.timings.tlsMs).toBeGreaterThan(0);
    }

    await using other = await dialSecurely('other.example', receiver);
    expect(other.code).toBe('tls_invalid');
  });

  it('carries attempts like any other connection', async () => {
    tls.setDefaultCACertificates([...authorities, certificate.cert]);
    await using receiver = await startReceiver(
      (_received, response) => {
        response.writeContinue();
        response.end('ok');
      },
      { tls: certificate },
    );
    await using sender = openSender({ lookup: answering('127.0.0.1') });
    const attempt = (host: string) => sender.send(attemptOn(`https://${host}:${receiver.port}/`));
    const first = await attempt('receiver.example');
    expect(first).toMatchObject({ status: 200, timings: { tlsMs: expect.any(Number) } });
    expect(Buffer.from(first.excerpt!).toString()).toBe('ok');
    expect((await attempt('receiver.example')).timings).not.toHaveProperty('tlsMs');
    expect(receiver.connections).toBe(1);
    expect(await attempt('other.example')).toMatchObject({ error: 'tls_invalid' });
  });
});
