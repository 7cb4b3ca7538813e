/** Every rule of a single key: what is taken, with what it becomes, and what is refused. */
import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { createFolder } from './folder.ts';

const hex = 'ab'.repeat(32);
const keyBytes = new Uint8Array(32).fill(0xab);
const base64 = Buffer.from(keyBytes).toString('base64');
const otherHex = 'cd'.repeat(32);
const otherBytes = new Uint8Array(32).fill(0xcd);

describe('defaults', () => {
  it('are those of the contract', () => {
    const folder = createFolder();
    expect(folder.load()).toEqual({
      config: {
        listen: { host: '127.0.0.1', port: 8080 },
        admin: { host: '127.0.0.1', port: 8081 },
        data: `${folder.path}/data`,
        role: 'all',
        workers: 1,
        encryptionKeys: [],
        logLevel: 'info',
        projects: new Map(),
        apps: new Map(),
        webhooks: {
          attemptTimeout: 15_000,
          maxBody: 16_777_216,
          commitWait: 100,
          concurrency: 256,
          perTarget: 32,
          allowTargets: [],
          retention: 2_592_000_000,
        },
        async: { timeout: 900_000, maxStarts: 2, maxRequest: 16_777_216, retention: 86_400_000 },
        appTimeout: 900_000,
        appEnvironment: {},
      },
      warnings: [],
      keyFiles: new Map(),
    });
  });

  it.each(['', '# nothing\n', 'projects:\napps:\nwebhooks:\nasync:\n', '{}'])(
    'hold for the file %j',
    yaml => {
      const folder = createFolder(yaml);
      expect(folder.load().config).toEqual({ ...createFolder().load().config, data: `${folder.path}/data` });
    },
  );
});

describe('a key of the top level', () => {
  const taken: [string, (config: Config) => unknown, unknown][] = [
    ['listen: 0.0.0.0:80', c => c.listen, { host: '0.0.0.0', port: 80 }],
    ['listen: :8080', c => c.listen, { host: '::', port: 8080 }],
    ['listen: "[::1]:8080"', c => c.listen, { host: '::1', port: 8080 }],
    ['admin: localhost:0', c => c.admin, { host: 'localhost', port: 0 }],
    ['adminToken: s3cret', c => c.adminToken, 's3cret'],
    [`encryptionKey: ${hex}`, c => c.encryptionKeys, [keyBytes]],
    [`encryptionKey: ${base64}`, c => c.encryptionKeys, [keyBytes]],
    [`encryptionKey: [${base64}, ${otherHex}]`, c => c.encryptionKeys, [keyBytes, otherBytes]],
    [`encryptionKey: ${otherHex}, ${hex}`, c => c.encryptionKeys, [otherBytes, keyBytes]],
    ['data: /var/lib/afterword', c => c.data, '/var/lib/afterword'],
    ['logLevel: debug', c => c.logLevel, 'debug'],
    ['appTimeout: 1h30m', c => c.appTimeout, 5_400_000],
    ['role: all', c => c.role, 'all'],
    ['workers: 64', c => c.workers, 64],
    ['workers: "2"', c => c.workers, 2],
    ['workers: auto', c => c.workers, Math.min(64, availableParallelism())],
  ];
  it.each(taken)('takes %s', (yaml, pick, value) => {
    expect(pick(createFolder(yaml).load().config)).toEqual(value);
  });

  it.each([
    ['listen: 127.0.0.1', 'listen: expected host:port'],
    ['listen: 8080', 'listen: expected host:port'],
    ['listen:', 'listen: has no value'],
    ['admin: [a]', 'admin: expected host:port'],
    ['admin: 127.0.0.1:8080', 'admin: expected another address than that of `listen`'],
    ['adminToken: ""', 'adminToken: expected visible ASCII'],
    ['adminToken: a b', 'adminToken: expected visible ASCII'],
    ['adminToken: 12', 'adminToken: expected visible ASCII'],
    ['data: ""', 'data: expected text that is not empty'],
    ['data: 5', 'data: expected text'],
    ['role: proxy', 'role: expected one of all, gateway, dispatcher'],
    ['workers: 0', 'workers: expected a whole number from 1 to 64, or auto'],
    ['workers: 65', 'workers: expected a whole number from 1 to 64, or auto'],
    ['workers: 1.5', 'workers: expected a whole number from 1 to 64, or auto'],
    ['workers: automatic', 'workers: expected a whole number from 1 to 64, or auto'],
    ['workers: []', 'workers: expected a whole number from 1 to 64, or auto'],
    ['encryptionKey: short', 'encryptionKey: expected 32 bytes as 64 hex digits or as base64'],
    [
      `encryptionKey: ${'1'.repeat(64)}`,
      'encryptionKey: expected 32 bytes as 64 hex digits or as base64, in quotes',
    ],
    ['encryptionKey: []', 'encryptionKey: expected 32 bytes'],
    ['encryptionKey: { a: 1 }', 'encryptionKey: expected 32 bytes'],
    [`encryptionKey: [${hex}, 5]`, 'encryptionKey[1]: expected 32 bytes'],
    [`encryptionKey: ${hex},`, 'encryptionKey[1]: expected 32 bytes'],
    [`encryptionKey: [${hex}, ${base64}]`, 'encryptionKey[1]: is the same key as one before it'],
    ['logLevel: loud', 'logLevel: expected one of debug, info, warn, error, silent'],
    ['appTimeout: 900', 'appTimeout: expected a duration with its unit'],
    ['appTimeout: 9ms', 'appTimeout: expected a duration with its unit (ms, s, m, h, d), from 10ms to 24h'],
    ['webhooks: 5', 'webhooks: expected a map'],
    ['projects: []', 'projects: expected a map'],
    ['apps: x', 'apps: expected a map'],
  ])('refuses %s', (yaml, mistake) => {
    const found = createFolder(yaml).mistakes();
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`afterword.yaml:1: ${mistake}`);
  });

  it('names the command that makes an encryption key', () => {
    expect(createFolder('encryptionKey: x').mistakes()[0]).toContain('openssl rand -base64 32');
  });

  it.each(['- a\n', 'text\n', '5\n'])('is missed where the file is %j', yaml => {
    expect(createFolder(yaml).mistakes()).toEqual(['afterword.yaml:1: expected a map of keys and values']);
  });
});

describe('adminToken', () => {
  it.each(['127.0.0.1:1', '127.9.9.9:1', '"[::1]:1"', 'localhost:1'])('is not needed on %s', admin => {
    expect(createFolder(`admin: ${admin}`).mistakes()).toEqual([]);
  });
  it.each(['0.0.0.0:1', ':1', '"[::]:1"', '10.0.0.1:1', 'example.com:1'])('is needed on %s', admin => {
    expect(createFolder(`data: d\nadmin: ${admin}`).mistakes()).toEqual([
      'afterword.yaml:2: adminToken: is needed, since `admin` listens on more than loopback',
    ]);
    expect(createFolder(`admin: ${admin}\nadminToken: t`).mistakes()).toEqual([]);
  });
  it('is needed where a variable opens the listener', () => {
    expect(createFolder().mistakes({ AFTERWORD_ADMIN: ':1' })).toEqual([
      'AFTERWORD_ADMIN: adminToken: is needed, since `admin` listens on more than loopback',
    ]);
  });
});

describe('webhooks and async', () => {
  it.each([
    ['attemptTimeout', '100ms', 100],
    ['attemptTimeout', '5m', 300_000],
    ['maxBody', '1KiB', 1024],
    ['maxBody', '1GiB', 1_073_741_824],
    ['maxBody', '5000', 5000],
    ['maxBody', '"5000"', 5000],
    ['maxBody', '2MB', 2_000_000],
    ['commitWait', '0ms', 0],
    ['commitWait', '10s', 10_000],
    ['concurrency', '1', 1],
    ['concurrency', '"100000"', 100_000],
    ['perTarget', '1', 1],
    ['retention', '1s', 1000],
    ['retention', '3650d', 315_360_000_000],
    ['allowTargets', '[127.0.0.0/8, "::1", hooks.internal]', ['127.0.0.0/8', '::1', 'hooks.internal']],
    ['allowTargets', '10.0.0.0/8, localhost', ['10.0.0.0/8', 'localhost']],
    ['allowTargets', '" "', []],
  ])('take %s: %s', (key, value, expected) => {
    const { webhooks } = createFolder(`webhooks:\n  ${key}: ${value}\n`).load().config;
    expect(webhooks[key as keyof typeof webhooks]).toEqual(expected);
  });

  it.each([
    ['webhooks.attemptTimeout', '99ms', 'from 100ms to 5m'],
    ['webhooks.attemptTimeout', '5m1ms', 'from 100ms to 5m'],
    ['webhooks.attemptTimeout', '15', 'a duration with its unit'],
    ['webhooks.attemptTimeout', '"15"', 'a duration with its unit'],
    ['webhooks.attemptTimeout', 'true', 'a duration with its unit'],
    ['webhooks.maxBody', '1023', 'from 1KiB to 1GiB'],
    ['webhooks.maxBody', '1073741825', 'from 1KiB to 1GiB'],
    ['webhooks.maxBody', '1.5MiB', 'expected a size such as 16MiB'],
    ['webhooks.maxBody', '-5', 'expected a size such as 16MiB'],
    ['webhooks.commitWait', '10001ms', 'from 0ms to 10s'],
    ['webhooks.concurrency', '0', 'a whole number from 1 to 100000'],
    ['webhooks.concurrency', '100001', 'a whole number from 1 to 100000'],
    ['webhooks.concurrency', '1.5', 'a whole number from 1 to 100000'],
    ['webhooks.concurrency', '.inf', 'a whole number from 1 to 100000'],
    ['webhooks.perTarget', 'many', 'a whole number from 1 to 100000'],
    ['webhooks.retention', '0ms', 'from 1s to 3650d'],
    ['webhooks.allowTargets', '{}', 'a list of addresses, CIDRs and host names'],
    ['async.timeout', '12h1ms', 'from 1s to 12h'],
    ['async.maxStarts', '0', 'a whole number from 1 to 100'],
    ['async.maxRequest', '2GiB', 'from 1KiB to 1GiB'],
    ['async.retention', '1', 'a duration with its unit'],
  ])('refuse %s: %s', (path, value, mistake) => {
    const [block, key] = path.split('.');
    const found = createFolder(`${block}:\n  ${key}: ${value}\n`).mistakes();
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`afterword.yaml:2: ${path}: expected`);
    expect(found[0]).toContain(mistake);
  });

  it('tell the line of every target that is wrong', () => {
    const yaml = 'webhooks:\n  allowTargets:\n    - 10.0.0.0/8\n    - localhost:80\n    - 7\n';
    const expected = 'expected an address, a CIDR or a host name (without port or brackets)';
    expect(createFolder(yaml).mistakes()).toEqual([
      `afterword.yaml:4: webhooks.allowTargets[1]: ${expected}`,
      `afterword.yaml:5: webhooks.allowTargets[2]: ${expected}`,
    ]);
  });

  it.each([
    ['timeout', '12h', 43_200_000],
    ['timeout', '1s', 1000],
    ['maxStarts', '1', 1],
    ['maxStarts', '"100"', 100],
    ['maxRequest', '1KiB', 1024],
    ['maxRequest', '1GiB', 1_073_741_824],
    ['retention', '1s', 1000],
    ['retention', '3650d', 315_360_000_000],
  ])('take async.%s: %s', (key, value, expected) => {
    const { config, warnings } = createFolder(`async:\n  ${key}: ${value}\n`).load();
    expect(config.async[key as keyof typeof config.async]).toBe(expected);
    expect(warnings).toEqual([]);
  });
});
