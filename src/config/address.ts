/**
 * Hosts and addresses as they are written in the configuration: what a listener binds, what counts as
 * loopback, and what may be opened as a target.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';
import type { Address } from './config.ts';

const ADDRESS = /^(?:\[(?<six>[^\]]*)\]|(?<plain>[^:[\]]*)):(?<port>\d{1,5})$/;
const LABEL = /^[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/;
const CIDR = /^(?<address>[^/]+)\/(?<bits>\d{1,3})$/;

/** `host:port`, `[::1]:8080` or `:8080` (every interface); undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  const { six, plain, port } = ADDRESS.exec(text)?.groups ?? {};
  if (port === undefined || Number(port) > 65_535) return undefined;
  if (six !== undefined) return isIPv6(six) ? { host: six, port: Number(port) } : undefined;
  if (plain === undefined || plain === '') return { host: '::', port: Number(port) };
  return isIPv4(plain) || isHostName(plain) ? { host: plain, port: Number(port) } : undefined;
}

export function formatAddress({ host, port }: Address): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Takes the host of a listener or of a URL; a name other than `localhost` may resolve to anything. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? bare.toLowerCase() === 'localhost' : ipaddr.parse(bare).range() === 'loopback';
}

/** A CIDR, an address or a host name, as `webhooks.allowTargets` takes them. */
export function isAllowableTarget(text: string): boolean {
  // Zones, ports, paths and patterns name no host; some would be cut off without a word below.
  if (/[\s%@?#*\\[\]]/.test(text)) return false;
  const { address, bits } = CIDR.exec(text)?.groups ?? {};
  if (address === undefined) {
    return isIP(text) !== 0 || (!text.includes('/') && isHostName(domainToASCII(text).replace(/\.$/, '')));
  }
  return (isIPv4(address) && Number(bits) <= 32) || (isIPv6(address) && Number(bits) <= 128);
}

// A last label that does not begin with a letter makes a number of the whole (127.1, 0x7f.1), not a name.
function isHostName(text: string): boolean {
  const labels = text.split('.');
  return text.length <= 253 && labels.every(label => LABEL.test(label)) && /^[A-Za-z]/.test(labels.at(-1)!);
}
