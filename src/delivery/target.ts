/**
 * Which addresses a delivery may go to. Everything but global unicast is refused, and so are the service's
 * own listeners; an operator can open ranges and host names on purpose, but never the listeners.
 * A verdict is a pure function of an address: who dials it asks here first (connect.ts).
 */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';
import { UsageError } from '../errors.ts';

export const BLOCK_REASONS = ['not_global', 'own_listener', 'unparsable'] as const;

export type BlockReason = (typeof BLOCK_REASONS)[number];

export type Verdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: BlockReason };

export interface Listener {
  readonly address: string;
  readonly port: number;
}

export interface TargetPolicy {
  /** The verdict on an address that is about to be dialled, or was, on behalf of a host name. */
  judge(address: string, port: number, hostname: string): Verdict;
  /** What can be told without a look-up: a name whose addresses are not known yet is allowed so far. */
  judgeUrl(url: URL): Verdict;
}

export interface TargetPolicyOptions {
  /** CIDRs, single addresses or host names that are open on purpose. */
  readonly allow: readonly string[];
  /** Where the service itself listens at the moment. */
  readonly listeners: () => readonly Listener[];
  /** The addresses of this machine: what a listener on a wildcard address can be reached by. */
  readonly localAddresses: () => readonly string[];
}

/** 4 or 16 bytes, in network order. */
type AddressBytes = readonly number[];

interface Range {
  readonly bytes: AddressBytes;
  readonly prefix: number;
}

/** IANA's IPv4 special-purpose registry and multicast, then two addresses of cloud metadata services. */
const REFUSED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '255.255.255.255/32',
  '168.63.129.16/32',
  '100.100.100.200/32',
];

/** The whole of IPv6 global unicast that is handed out today, and what is set apart inside it. */
const GLOBAL_V6 = '2000::/3';
const REFUSED_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];

const MAPPED: Range = { bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0], prefix: 96 };
const LOOPBACK_V4: Range = { bytes: [127, 0, 0, 0], prefix: 8 };
const LOOPBACK_V6: AddressBytes = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

const ALLOWED: Verdict = { allowed: true };
const refused = (reason: BlockReason): Verdict => ({ allowed: false, reason });

export function createTargetPolicy({ allow, listeners, localAddresses }: TargetPolicyOptions): TargetPolicy {
  const open = readAllowed(allow);
  const refusedRanges = [...REFUSED_V4, ...REFUSED_V6].map(constantRange);
  const globalV6 = constantRange(GLOBAL_V6);

  function isGlobal(bytes: AddressBytes): boolean {
    if (bytes.length === 16 && !contains(globalV6, bytes)) return false;
    return !refusedRanges.some(range => contains(range, bytes));
  }

  function isOwnListener(bytes: AddressBytes, port: number): boolean {
    const candidates = listeners().filter(listener => listener.port === port);
    if (candidates.length === 0) return false;
    const isLocal = isLoopback(bytes) || localAddresses().some(local => same(parseAddress(local), bytes));
    return candidates.some(({ address }) => {
      const listening = parseAddress(address);
      // Not knowing where it listens counts as everywhere: refusing too much is the safe side.
      if (listening === undefined || isUnspecified(listening)) return isLocal;
      // A system dials an unspecified address as loopback.
      return same(listening, bytes) || (isUnspecified(bytes) && isLoopback(listening));
    });
  }

  function judge(address: string, port: number, hostname: string): Verdict {
    const bytes = parseAddress(address);
    if (bytes === undefined) return refused('unparsable');
    if (isOwnListener(bytes, port)) return refused('own_listener');
    if (open.names.has(bareName(hostname)) || open.ranges.some(range => contains(range, bytes)))
      return ALLOWED;
    return isGlobal(bytes) ? ALLOWED : refused('not_global');
  }

  function judgeUrl(url: URL): Verdict {
    const port = portOf(url);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const name = bareName(host);
    if (isIP(name) !== 0) return judge(name, port, name);
    if (name !== 'localhost' && !name.endsWith('.localhost')) return ALLOWED;
    // RFC 6761 section 6.3: these names are loopback wherever they are looked up.
    const verdicts = [judge('127.0.0.1', port, name), judge('::1', port, name)];
    const own = verdicts.find(verdict => !verdict.allowed && verdict.reason === 'own_listener');
    return own ?? verdicts.find(verdict => verdict.allowed) ?? refused('not_global');
  }

  return { judge, judgeUrl };
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

function readAllowed(allow: readonly string[]): { ranges: readonly Range[]; names: ReadonlySet<string> } {
  const ranges: Range[] = [];
  const names = new Set<string>();
  for (const entry of allow) {
    const range = parseRange(entry);
    if (range !== undefined) {
      ranges.push(range);
      continue;
    }
    const name = parseName(entry);
    if (name === undefined) {
      throw new UsageError(
        `"${entry}" is not a CIDR, an address or a host name that targets can be allowed by`,
      );
    }
    names.add(name);
  }
  return { ranges, names };
}

function constantRange(cidr: string): Range {
  const range = parseRange(cidr);
  if (range === undefined) throw new Error(`not a range: ${cidr}`);
  return range;
}

/** A CIDR, or an address as the range of itself alone; a range of mapped addresses becomes its IPv4 range. */
function parseRange(text: string): Range | undefined {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  if (isIP(address) === 0 || address.includes('%')) return undefined;
  const bytes = ipaddr.parse(address).toByteArray();
  const prefix = digits === undefined ? bytes.length * 8 : Number(digits);
  if (prefix > bytes.length * 8) return undefined;
  if (prefix >= MAPPED.prefix && contains(MAPPED, bytes)) {
    return { bytes: bytes.slice(12), prefix: prefix - MAPPED.prefix };
  }
  return { bytes, prefix };
}

/** The name as a URL would hold it, or undefined where it is none (or would be read as a number). */
function parseName(text: string): string | undefined {
  if (/[\s/\\:%?#@[\]*]/.test(text)) return undefined;
  const name = bareName(domainToASCII(text));
  const isName = name.split('.').every(label => /^[a-z0-9_-]{1,63}$/.test(label)) && isIP(name) === 0;
  return isName ? name : undefined;
}

function bareName(hostname: string): string {
  return hostname.toLowerCase().replace(/\.$/, '');
}

/** Bytes of a literal address, without its zone and unmapped (RFC 4291 section 2.5.5.2). */
function parseAddress(text: string): AddressBytes | undefined {
  const address = text.replace(/%.*$/s, '');
  if (isIP(address) === 0) return undefined;
  const bytes = ipaddr.parse(address).toByteArray();
  return contains(MAPPED, bytes) ? bytes.slice(12) : bytes;
}

function contains({ bytes, prefix }: Range, address: AddressBytes): boolean {
  if (bytes.length !== address.length) return false;
  const whole = prefix >> 3;
  for (let index = 0; index < whole; index += 1) {
    if (bytes[index] !== address[index]) return false;
  }
  const mask = (0xff00 >> (prefix & 7)) & 0xff;
  return mask === 0 || ((bytes[whole]! ^ address[whole]!) & mask) === 0;
}

function same(one: AddressBytes | undefined, other: AddressBytes): boolean {
  return one !== undefined && contains({ bytes: one, prefix: one.length * 8 }, other);
}

function isUnspecified(bytes: AddressBytes): boolean {
  return bytes.every(byte => byte === 0);
}

/** Loopback, and the unspecified address, which a system dials as loopback. */
function isLoopback(bytes: AddressBytes): boolean {
  return contains(LOOPBACK_V4, bytes) || same(LOOPBACK_V6, bytes) || isUnspecified(bytes);
}
