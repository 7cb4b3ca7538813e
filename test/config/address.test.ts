import { describe, expect, it } from 'vitest';
import { formatAddress, isAllowableTarget, isLoopbackHost, parseAddress } from '../../src/config/address.ts';

describe('addresses of listeners', () => {
  it.each([
    ['127.0.0.1:8080', '127.0.0.1', 8080],
    ['0.0.0.0:0', '0.0.0.0', 0],
    ['localhost:65535', 'localhost', 65_535],
    ['node-1.example.com:80', 'node-1.example.com', 80],
    ['[::1]:8080', '::1', 8080],
    [':8080', '::', 8080],
  ])('reads %s', (text, host, port) => {
    expect(parseAddress(text)).toEqual({ host, port });
    expect(parseAddress(formatAddress({ host, port }))).toEqual({ host, port });
  });

  it.each([
    '',
    '8080',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '127.0.0.1:-1',
    '127.0.0.1:x',
    '127.1:80',
    '256.0.0.1:80',
    '::1:8080',
    '[::1]',
    '[]:80',
    '[127.0.0.1]:80',
    '[localhost]:80',
    '*:80',
    'http://x:80',
    ' :80',
    'a..b:80',
    '-a:80',
  ])('refuses %j', text => expect(parseAddress(text)).toBeUndefined());
});

describe('loopback', () => {
  it.each(['127.0.0.1', '127.255.255.254', '::1', '[::1]', '0:0:0:0:0:0:0:1', 'localhost', 'LOCALHOST'])(
    'is %s',
    host => expect(isLoopbackHost(host)).toBe(true),
  );
  it.each([
    '0.0.0.0',
    '::',
    '126.255.255.255',
    '128.0.0.0',
    '::2',
    '10.0.0.1',
    'localhost.example.com',
    'lo',
  ])('is not %s', host => expect(isLoopbackHost(host)).toBe(false));
});

describe('targets that can be opened', () => {
  it.each([
    '10.0.0.0/8',
    '127.0.0.1',
    '127.0.0.1/32',
    '0.0.0.0/0',
    '::1',
    'fd00::/8',
    '::/0',
    'localhost',
    'hooks.internal',
    'my_service',
    'xn--bcher-kva.example',
    'bücher.example',
    'example.com.',
  ])('takes %s', text => expect(isAllowableTarget(text)).toBe(true));

  it.each([
    '',
    '10.0.0.0/33',
    '::/129',
    '10.0.0/8',
    '127.1',
    '0x7f.1',
    '[::1]',
    'fe80::1%eth0',
    'localhost:80',
    'http://localhost',
    'a/b',
    '*.example.com',
    'a b',
    'a@b',
    'a..b',
    'host/8',
  ])('refuses %j', text => expect(isAllowableTarget(text)).toBe(false));
});
