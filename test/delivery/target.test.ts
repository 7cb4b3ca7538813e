import { BlockList } from 'node:net';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTargetPolicy, type Listener, type TargetPolicyOptions } from '../../src/delivery/target.ts';
import { UsageError } from '../../src/errors.ts';

function policyWith(options: Partial<TargetPolicyOptions> = {}) {
  return createTargetPolicy({ allow: [], listeners: () => [], localAddresses: () => [], ...options });
}

const strict = policyWith();
const allowed = (address: string, policy = strict, host = 'receiver.example') =>
  policy.judge(address, 443, host).allowed;

/** Range, its first and last address, and the addresses just outside that are global. */
const REFUSED: ReadonlyArray<readonly [string, readonly [string, string], readonly string[]]> = [
  ['0.0.0.0/8', ['0.0.0.0', '0.255.255.255'], ['1.0.0.0']],
  ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0']],
  ['100.64.0.0/10', ['100.64.0.0', '100.127.255.255'], ['100.63.255.255', '100.128.0.0']],
  ['127.0.0.0/8', ['127.0.0.0', '127.255.255.255'], ['126.255.255.255', '128.0.0.0']],
  ['169.254.0.0/16', ['169.254.0.0', '169.254.255.255'], ['169.253.255.255', '169.255.0.0']],
  ['172.16.0.0/12', ['172.16.0.0', '172.31.255.255'], ['172.15.255.255', '172.32.0.0']],
  ['192.0.0.0/24', ['192.0.0.0', '192.0.0.255'], ['191.255.255.255', '192.0.1.0']],
  ['192.0.2.0/24', ['192.0.2.0', '192.0.2.255'], ['192.0.1.255', '192.0.3.0']],
  ['192.31.196.0/24', ['192.31.196.0', '192.31.196.255'], ['192.31.195.255', '192.31.197.0']],
  ['192.52.193.0/24', ['192.52.193.0', '192.52.193.255'], ['192.52.192.255', '192.52.194.0']],
  ['192.88.99.0/24', ['192.88.99.0', '192.88.99.255'], ['192.88.98.255', '192.88.100.0']],
  ['192.168.0.0/16', ['192.168.0.0', '192.168.255.255'], ['192.167.255.255', '192.169.0.0']],
  ['192.175.48.0/24', ['192.175.48.0', '192.175.48.255'], ['192.175.47.255', '192.175.49.0']],
  ['198.18.0.0/15', ['198.18.0.0', '198.19.255.255'], ['198.17.255.255', '198.20.0.0']],
  ['198.51.100.0/24', ['198.51.100.0', '198.51.100.255'], ['198.51.99.255', '198.51.101.0']],
  ['203.0.113.0/24', ['203.0.113.0', '203.0.113.255'], ['203.0.112.255', '203.0.114.0']],
  ['224.0.0.0/4', ['224.0.0.0', '239.255.255.255'], ['223.255.255.255']],
  ['240.0.0.0/4', ['240.0.0.0', '255.255.255.255'], []],
  ['168.63.129.16/32', ['168.63.129.16', '168.63.129.16'], ['168.63.129.15', '168.63.129.17']],
  ['100.100.100.200/32', ['100.100.100.200', '100.100.100.200'], []],
  ['below 2000::/3', ['::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'], ['2000::']],
  ['above 2000::/3', ['4000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'], ['3fff:1000::']],
  ['2001::/23', ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'], ['2000:ffff::', '2001:200::']],
  [
    '2001:db8::/32',
    ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db7:ffff::', '2001:db9::'],
  ],
  ['2002::/16', ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'], ['2001:ffff::', '2003::']],
  [
    '2620:4f:8000::/48',
    ['2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff'],
    ['2620:4f:7fff:ffff::', '2620:4f:8001::'],
  ],
  ['3fff::/20', ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'], ['3ffe:ffff::', '3fff:1000::']],
];

describe('judge', () => {
  it.each(REFUSED)('refuses %s at both ends, and not what is beside it', (_range, inside, outside) => {
    expect(inside.filter(address => allowed(address))).toEqual([]);
    expect(outside.filter(address => !allowed(address))).toEqual([]);
  });

  it.each([
    ['loopback', '::1'],
    ['loopback in the IPv4-compatible form', '::7f00:1'],
    ['loopback mapped', '::ffff:127.0.0.1'],
    ['loopback mapped, in hex', '::ffff:7f00:1'],
    ['a private address mapped', '::ffff:10.1.2.3'],
    ['metadata mapped', '::ffff:169.254.169.254'],
    ['loopback translated', '::ffff:0:127.0.0.1'],
    ['NAT64', '64:ff9b::8.8.8.8'],
    ['local NAT64', '64:ff9b:1::1'],
    ['unique local', 'fd00::1'],
    ['link-local', 'fe80::1'],
    ['link-local with a zone', 'fe80::1%eth0'],
    ['multicast', 'ff02::1'],
    ['segment routing', '5f00::1'],
    ['metadata over IPv6', 'fd00:ec2::254'],
  ])('refuses %s', (_what, address) => {
    expect(strict.judge(address, 443, 'receiver.example')).toEqual({ allowed: false, reason: 'not_global' });
  });

  it.each(['8.8.8.8', '::ffff:8.8.8.8', '2606:4700::1', '2a00:1450:4001::5%eth0'])('allows %s', address => {
    expect(allowed(address)).toBe(true);
  });

  it.each(['', 'receiver.example', '1.2.3', '0x7f.0.0.1', '127.0.0.1.', '1.2.3.4/8', '[::1]', '%eth0'])(
    'refuses %j as unparsable',
    address => {
      expect(strict.judge(address, 443, 'receiver.example')).toEqual({
        allowed: false,
        reason: 'unparsable',
      });
    },
  );

  it('agrees with an independent list on any IPv4 address, mapped or not', () => {
    const list = new BlockList();
    for (const [range] of REFUSED) {
      const [network = '', prefix] = range.split('/');
      if (network.includes('.')) list.addSubnet(network, Number(prefix), 'ipv4');
    }
    const near = fc.constantFrom(
      ...REFUSED.flatMap(([, inside]) => inside).filter(address => address.includes('.')),
    );
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), near), address => {
        expect(allowed(address)).toBe(!list.check(address, 'ipv4'));
        expect(allowed(`::ffff:${address}`)).toBe(allowed(address));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('allow', () => {
  it.each([
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255', '::ffff:10.1.1.1'], ['172.16.0.1', '192.168.0.1', '::1']],
    ['10.1.2.3/8', ['10.200.0.1'], ['172.16.0.1']],
    ['127.0.0.1', ['127.0.0.1', '::ffff:127.0.0.1'], ['127.0.0.2', '::1']],
    ['::1', ['::1'], ['127.0.0.1', '::2']],
    ['fd00::/9', ['fd00::1', 'fd7f::1'], ['fd80::1', 'fc00::1']],
    ['::ffff:10.0.0.0/104', ['10.9.9.9', '::ffff:10.9.9.9'], ['192.168.1.1']],
    ['0.0.0.0/0', ['127.0.0.1', '169.254.169.254'], ['::1']],
    ['::/0', ['::1', 'fe80::1'], ['127.0.0.1', '::ffff:127.0.0.1']],
  ])('%s opens what it holds and no more', (entry, inside, outside) => {
    const policy = policyWith({ allow: [entry] });
    expect(inside.filter(address => !allowed(address, policy))).toEqual([]);
    expect(outside.filter(address => allowed(address, policy))).toEqual([]);
  });

  it.each([
    ['Hooks.Internal', 'hooks.internal', true],
    ['hooks.internal', 'HOOKS.internal.', true],
    ['hooks.internal.', 'hooks.internal', true],
    ['münchen.example', 'xn--mnchen-3ya.example', true],
    ['hooks.internal', 'a.hooks.internal', false],
    ['hooks.internal', 'internal', false],
  ])('the name %s for the host %s: %s', (entry, host, expected) => {
    expect(allowed('10.0.0.5', policyWith({ allow: [entry] }), host)).toBe(expected);
  });

  it.each([
    '',
    ' ',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/',
    '10.0.0/8',
    '/8',
    '300.1.1.1',
    '10.0',
    '0x7f000001',
  ])('refuses the entry %j', entry => {
    expect(() => policyWith({ allow: [entry] })).toThrow(UsageError);
  });

  it.each([
    'http://hooks.internal',
    'hooks.internal:80',
    '*.internal',
    'a b',
    'fe80::1%eth0',
    '[::1]',
    'a..b',
  ])('refuses the entry %j', entry => {
    expect(() => policyWith({ allow: [entry] })).toThrow(UsageError);
  });
});

describe('own listeners', () => {
  const everything = ['0.0.0.0/0', '::/0', 'localhost', 'self.example'];
  const on = (address: string, port = 8080): Listener => ({ address, port });

  it.each([
    [on('127.0.0.1'), ['127.0.0.1', '::ffff:127.0.0.1', '0.0.0.0', '::'], ['127.0.0.2', '::1', '10.0.0.7']],
    [on('::1'), ['::1', '::', '0.0.0.0'], ['127.0.0.1']],
    [on('10.0.0.7'), ['10.0.0.7', '::ffff:10.0.0.7'], ['127.0.0.1', '10.0.0.8', '0.0.0.0']],
    [
      on('0.0.0.0'),
      ['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '10.0.0.7', '2a00::7'],
      ['10.0.0.8', '8.8.8.8'],
    ],
    [on('::'), ['127.0.0.1', '::1', '::', '::ffff:10.0.0.7', 'fe80::7%eth0'], ['2a00::8']],
    [on('unknown'), ['127.0.0.1', '10.0.0.7'], ['8.8.8.8']],
  ])('%o stays refused, whatever is allowed', (listener, own, others) => {
    const policy = policyWith({
      allow: everything,
      listeners: () => [on('127.0.0.1', 9999), listener],
      localAddresses: () => ['127.0.0.1', '10.0.0.7', '2a00::7', 'fe80::7%lo'],
    });
    const verdicts = (port: number) => (address: string) => policy.judge(address, port, 'self.example');
    for (const verdict of own.map(verdicts(8080)))
      expect(verdict).toEqual({ allowed: false, reason: 'own_listener' });
    for (const verdict of others.map(verdicts(8080))) expect(verdict).toEqual({ allowed: true });
    for (const verdict of own.map(verdicts(8082))) expect(verdict).toEqual({ allowed: true });
  });

  it('are asked for at every verdict', () => {
    const listeners: Listener[] = [];
    const policy = policyWith({ allow: everything, listeners: () => listeners });
    expect(policy.judge('127.0.0.1', 8080, 'x').allowed).toBe(true);
    listeners.push(on('127.0.0.1'));
    expect(policy.judge('127.0.0.1', 8080, 'x').allowed).toBe(false);
  });
});

describe('judgeUrl', () => {
  const verdict = (url: string, options: Partial<TargetPolicyOptions> = {}) =>
    policyWith(options).judgeUrl(new URL(url));
  const refused = { allowed: false, reason: 'not_global' };

  it.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://127.0.0.1./',
    'http://%31%32%37.0.0.1/',
    'http://１２７.0.0.1/',
    'http://0/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:a9fe:a9fe]/',
    'https://169.254.169.254/latest/meta-data/',
    'https://10.0.0.1:8443/',
    'http://localhost/',
    'http://LOCALHOST:8080/',
    'http://localhost./',
    'http://a.b.localhost/',
  ])('refuses %s', url => {
    expect(verdict(url)).toEqual(refused);
  });

  it.each([
    'http://8.8.8.8/',
    'https://[2606:4700::1]:8443/x?y',
    'https://receiver.example/',
    'https://localhost.example/',
    'http://notlocalhost/',
  ])('allows %s so far', url => {
    expect(verdict(url)).toEqual({ allowed: true });
  });

  it.each([
    ['http://127.0.0.1/', ['127.0.0.0/8']],
    ['http://127.0.0.1./', ['127.0.0.1']],
    ['http://[::1]/', ['::1']],
    ['http://localhost/', ['localhost']],
    ['http://localhost./', ['localhost']],
    ['http://localhost/', ['127.0.0.0/8']],
    ['http://localhost/', ['::1']],
    ['http://a.localhost/', ['a.localhost']],
  ])('allows %s where %j is open', (url, allow) => {
    expect(verdict(url, { allow })).toEqual({ allowed: true });
  });

  it('does not open one name under localhost by another', () => {
    expect(verdict('http://a.localhost/', { allow: ['localhost'] })).toEqual(refused);
  });

  it.each(['http://127.0.0.1/', 'http://localhost:80/', 'http://[::ffff:127.0.0.1]/'])(
    'refuses %s where the service listens there, on the default port',
    url => {
      const listeners = () => [{ address: '127.0.0.1', port: 80 }];
      expect(verdict(url, { allow: ['127.0.0.0/8', '::1'], listeners })).toEqual({
        allowed: false,
        reason: 'own_listener',
      });
    },
  );
});
