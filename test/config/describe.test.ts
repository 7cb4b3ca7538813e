import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { describeConfig, describeConfigData } from '../../src/config/describe.ts';
import { makeCertificate } from '../support/certificate.ts';
import { createFolder, type Folder } from './folder.ts';

const ENV = {
  AFTERWORD_ENCRYPTION_KEY: Buffer.from('CANARY-encryption-key-32-bytes..').toString('base64'),
  TOKEN: 'CANARY-admin-token',
  SECRET: 'CANARY-jwt-secret-of-more-than-32-bytes',
  PASSWORD: 'CANARY-password',
};

const YAML = `listen: :80
admin: "[::1]:81"
adminToken: \${TOKEN}
data: ./store
projects:
  one:
    jwt: { secret: \${SECRET}, issuer: 'not a $\${REFERENCE}', audience: "yes: [no" }
    requireSecret: true
  two:
    jwt: { publicKey: two.pem }
  "3":
    jwt: { jwksUrl: https://idp.example/keys }
apps:
  one/a: { runtime: cortex, url: http://10.0.0.5:9000/base, concurrency: 2 }
  two/b: { runtime: custom, url: https://b.internal, forwardAuthorization: true }
  two/c: { runtime: cortex, entry: fn/main.ts }
  two/d: { runtime: cortex, entry: fn/main.py, python: .venv/bin/python, cwd: ., env: { DB: \${PASSWORD} }, start: call }
  two/e: { runtime: custom, command: [serve, "$\${HOME}", ""], port: 9001, health: /up, replicas: 2, queue: 0 }
webhooks:
  attemptTimeout: 1500ms
  maxBody: 5000
  commitWait: 0ms
  allowTargets: [10.0.0.0/8, "::1"]
  retention: 36h
appTimeout: 90m
async: { timeout: 2h }
`;

function createExample(): Folder {
  const folder = createFolder(YAML);
  const { publicKey } = generateKeyPairSync('ed25519');
  for (const file of ['fn/main.ts', 'fn/main.py']) folder.write(file, '');
  folder.write('two.pem', publicKey.export({ type: 'spki', format: 'pem' }));
  return folder;
}

describe('the description of a configuration', () => {
  it('has every key of the contract in its units', () => {
    const folder = createExample();
    expect(describeConfigData(folder.load(ENV))).toEqual({
      listen: '[::]:80',
      admin: '[::1]:81',
      adminToken: '[redacted]',
      data: `${folder.path}/store`,
      role: 'all',
      workers: 1,
      encryptionKey: '[redacted]',
      logLevel: 'info',
      projects: {
        one: {
          jwt: { secret: '[redacted]', issuer: 'not a ${REFERENCE}', audience: 'yes: [no' },
          standardWebhooks: false,
          requireSecret: true,
          maxPending: 100_000,
        },
        two: {
          jwt: { publicKey: `${folder.path}/two.pem` },
          standardWebhooks: false,
          requireSecret: false,
          maxPending: 100_000,
        },
        '3': {
          jwt: { jwksUrl: 'https://idp.example/keys' },
          standardWebhooks: false,
          requireSecret: false,
          maxPending: 100_000,
        },
      },
      apps: {
        'one/a': {
          runtime: 'cortex',
          url: 'http://10.0.0.5:9000/base',
          concurrency: 2,
          forwardAuthorization: false,
        },
        'two/b': {
          runtime: 'custom',
          url: 'https://b.internal/',
          concurrency: 8,
          forwardAuthorization: true,
        },
        'two/c': {
          runtime: 'cortex',
          entry: `${folder.path}/fn/main.ts`,
          cwd: `${folder.path}/fn`,
          replicas: 1,
          concurrency: 8,
          queue: 100,
          start: 'boot',
          forwardAuthorization: false,
        },
        'two/d': {
          runtime: 'cortex',
          entry: `${folder.path}/fn/main.py`,
          python: '.venv/bin/python',
          cwd: folder.path,
          env: { DB: '[redacted]' },
          replicas: 1,
          concurrency: 8,
          queue: 100,
          start: 'call',
          forwardAuthorization: false,
        },
        'two/e': {
          runtime: 'custom',
          command: ['serve', '${HOME}', ''],
          port: 9001,
          health: '/up',
          cwd: folder.path,
          replicas: 2,
          concurrency: 256,
          queue: 0,
          start: 'boot',
          forwardAuthorization: false,
        },
      },
      webhooks: {
        attemptTimeout: '1s500ms',
        maxBody: 5000,
        commitWait: '0ms',
        concurrency: 256,
        perTarget: 32,
        allowTargets: ['10.0.0.0/8', '::1'],
        retention: '1d12h',
      },
      appTimeout: '1h30m',
      async: { timeout: '2h', maxStarts: 2, maxRequest: '16MiB', retention: '1d' },
    });
  });

  it('has the database as it was given, without the password', () => {
    const keys = `encryptionKey: [${'ab'.repeat(32)}, ${'cd'.repeat(32)}]\nrole: gateway\nworkers: 2\n`;
    const folder = createFolder(`${keys}database: postgresql://u:CANARY@db.internal/d\n`);
    expect(describeConfigData(folder.load())).toMatchObject({
      database: 'postgres://u:[redacted]@db.internal:5432/d?sslmode=disable',
      databaseConnections: 8,
      encryptionKey: ['[redacted]', '[redacted]'],
      role: 'gateway',
      workers: 2,
    });
    expect(describeConfigData(folder.load())).not.toHaveProperty('databasePassword');
    const apart = {
      AFTERWORD_DATABASE: 'postgres://u@/d?host=/run/pg',
      AFTERWORD_DATABASE_PASSWORD: 'CANARY',
    };
    expect(describeConfigData(folder.load(apart))).toMatchObject({
      database: 'postgres://u@:5432/d?host=/run/pg&sslmode=disable',
      databasePassword: '[redacted]',
    });
    const texts = [describeConfig(folder.load()), describeConfig(folder.load(apart))];
    expect(texts.join('')).not.toContain('CANARY');
  });

  it('of a database loads to the same once the password is back', () => {
    const directory = createFolder();
    makeCertificate(directory.path, 'db.internal');
    directory.write(
      'afterword.yaml',
      'database: postgres://u:CANARY@db.internal/d?sslmode=verify-full&sslrootcert=cert.pem&' +
        'sslcert=cert.pem&sslkey=key.pem\ndatabaseConnections: 3\n',
    );
    const loaded = directory.load(ENV);
    const again = createFolder(describeConfig(loaded).replace('[redacted]@', 'CANARY@')).load(ENV);
    expect(again.config).toEqual(loaded.config);
    expect(again.config.database?.ssl?.ca).toContain('BEGIN CERTIFICATE');
    expect(describeConfig(again)).toBe(describeConfig(loaded));
  });

  it('leaves out what is not set', () => {
    const data = describeConfigData(createFolder().load());
    expect(Object.keys(data)).toEqual([
      'listen',
      'admin',
      'data',
      'role',
      'workers',
      'logLevel',
      'projects',
      'apps',
      'webhooks',
      'appTimeout',
      'async',
    ]);
  });

  it('shows no secret', () => {
    const loaded = createExample().load(ENV);
    for (const text of [describeConfig(loaded), JSON.stringify(describeConfigData(loaded))]) {
      expect(text).not.toContain('CANARY');
      expect(text).not.toContain(ENV.AFTERWORD_ENCRYPTION_KEY.slice(0, 8));
      expect(text).toContain('[redacted]');
    }
  });

  it('is YAML of the same data', () => {
    const loaded = createExample().load(ENV);
    const text = describeConfig(loaded).replaceAll('$${', () => '${');
    expect(parse(text)).toEqual(describeConfigData(loaded));
  });

  it('loads to the same configuration once the secrets are back', () => {
    const loaded = createExample().load(ENV);
    const text = describeConfig(loaded)
      .replace('adminToken: "[redacted]"', 'adminToken: ${TOKEN}')
      .replace('secret: "[redacted]"', 'secret: ${SECRET}')
      .replace('DB: "[redacted]"', 'DB: ${PASSWORD}');
    const again = createFolder(text).load(ENV);
    expect(again.config).toEqual(loaded.config);
    expect(describeConfig(again)).toBe(describeConfig(loaded));
  });
});
