/**
 * Opens the connection of an attempt, and is the only place that does. Every address of the target's host is
 * judged before any is dialled, the address itself is dialled and never the name again, and the socket's
 * remote address is judged once more: an answer of DNS that changes in between has nothing to act on.
 */
import dns from 'node:dns/promises';
import net, { isIP } from 'node:net';
import tls from 'node:tls';
import type { Clock } from '../clock.ts';
import { AttemptFault } from './outcome.ts';
import type { TargetPolicy } from './target.ts';

/** All addresses of a host name, in the order in which to try them. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

export const systemLookup: Lookup = async hostname => {
  const found = await dns.lookup(hostname, { all: true });
  return found.map(({ address }) => address);
};

/** How long the steps of connecting took; a step that was not reached, or not needed, is absent. */
export interface ConnectTimings {
  dnsMs?: number;
  connectMs?: number;
  tlsMs?: number;
}

export interface Dial {
  /** A name or a literal address, without brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly secure: boolean;
  /** Filled in on the way, so that it also tells how far a failed connect came. */
  readonly timings: ConnectTimings;
  readonly signal: AbortSignal;
}

export type Dialer = (dial: Dial) => Promise<net.Socket>;

export interface DialerOptions {
  readonly policy: Pick<TargetPolicy, 'judge'>;
  readonly lookup: Lookup;
  readonly clock: Clock;
  /** Deadline of a whole attempt: an address that keeps silent must not use up the share of the next. */
  readonly timeout: number;
}

export function createDialer({ policy, lookup, clock, timeout }: DialerOptions): Dialer {
  const resolve = shareConcurrent(lookup);

  function mustAllow(address: string, { port, hostname }: Dial): void {
    const verdict = policy.judge(address, port, hostname);
    if (!verdict.allowed)
      throw new AttemptFault('blocked_target', `${address} is refused: ${verdict.reason}`);
  }

  async function measured<T>(dial: Dial, step: keyof ConnectTimings, work: Promise<T>): Promise<T> {
    const began = clock.elapsed();
    try {
      return await work;
    } finally {
      dial.timings[step] = clock.elapsed() - began;
    }
  }

  async function addressesOf(dial: Dial): Promise<readonly string[]> {
    if (isIP(dial.hostname) !== 0) return [dial.hostname];
    const addresses = await measured(dial, 'dnsMs', resolve(dial.hostname));
    if (addresses.length === 0) throw new AttemptFault('dns_not_found', 'the name has no address');
    return addresses;
  }

  /** In order, until one connects; the first failure is the one to tell of, being that of the preferred one. */
  async function connectAny(addresses: readonly string[], dial: Dial): Promise<net.Socket> {
    const share = timeout / addresses.length;
    let failure: unknown;
    for (const address of addresses) {
      dial.signal.throwIfAborted();
      try {
        return await connectTo(address, dial, share);
      } catch (error) {
        failure ??= error;
      }
    }
    throw failure;
  }

  function connectTo(address: string, { port, signal }: Dial, limit: number): Promise<net.Socket> {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host: address, port, signal, noDelay: true, autoSelectFamily: false });
      const giveUp = () => socket.destroy(new AttemptFault('timeout', `${address} did not answer`));
      const cancel = clock.after(limit, giveUp);
      socket.once('connect', () => {
        cancel();
        resolve(socket);
      });
      // Stays for good: whoever owns the socket later adds a listener, and in between no error may go astray.
      socket.on('error', error => {
        cancel();
        reject(error);
      });
    });
  }

  return async dial => {
    const addresses = await addressesOf(dial);
    for (const address of addresses) mustAllow(address, dial);
    const socket = await measured(dial, 'connectMs', connectAny(addresses, dial));
    try {
      mustAllow(socket.remoteAddress ?? '', dial);
      return dial.secure ? await measured(dial, 'tlsMs', startTls(socket, dial.hostname)) : socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  };
}

/** Verification is asked for outright, so that no environment variable can switch it off. */
function startTls(socket: net.Socket, hostname: string): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    // RFC 6066 section 3: the server name is a DNS name without a trailing dot, never an address.
    const identity = isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : { host: hostname };
    const secured = tls.connect({
      socket,
      ...identity,
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
    });
    secured.once('secureConnect', () => resolve(secured));
    secured.on('error', reject);
  });
}

/** Look-ups of one name at the same moment are one look-up: a slow resolver is not asked in parallel. */
function shareConcurrent(lookup: Lookup): Lookup {
  const running = new Map<string, Promise<readonly string[]>>();
  return hostname => {
    const known = running.get(hostname);
    if (known !== undefined) return known;
    const found = lookup(hostname).finally(() => running.delete(hostname));
    running.set(hostname, found);
    return found;
  };
}
