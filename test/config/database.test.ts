/** What has to do with a shared database: its password, its certificates, and what must be given along with it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateKeyPairSync } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { createFolder, type Folder } from './folder.ts';
import { startTlsDatabase } from './tls-database.ts';

const KEY = `encryptionKey: ${'ab'.repeat(32)}\n`;

function withDatabase(url: string, more = ''): Folder {
  return createFolder(`${KEY}database: ${url}\n${more}`);
}

describe('a database', () => {
  it('is taken apart', () => {
    const { config } = withDatabase('postgres://u:p%40@h:6000/d', 'databaseConnections: 20').load();
    expect(config.database).toEqual({
      host: 'h',
      port: 6000,
      database: 'd',
      user: 'u',
      password: 'p@',
      connections: 20,
    });
  });

  it('has eight connections, no password and no encryption by itself', () => {
    const { config, warnings } = withDatabase('postgres://u@/d?host=/run/pg').load();
    const expected = { host: '/run/pg', port: 5432, database: 'd', user: 'u', connections: 8 };
    expect(config.database).toEqual(expected);
    expect(warnings).toEqual([]);
  });

  it('can have its password apart, also in a file', () => {
    const folder = withDatabase('postgres://u@h/d', 'databasePassword: "apart:@/"');
    expect(folder.load().config.database?.password).toBe('apart:@/');
    folder.write('password', 'in a file\n');
    const env = { AFTERWORD_DATABASE_PASSWORD_FILE: 'password' };
    expect(folder.load(env).config.database?.password).toBe('in a file');
  });

  it.each(['gateway', 'dispatcher', 'all'] as const)('is shared by nodes of the role %s', role => {
    expect(withDatabase('postgres://u@h/d', `role: ${role}`).load().config.role).toBe(role);
  });

  it('and its company have their mistakes told together', () => {
    const yaml =
      'database: postgres://u:p@h\ndatabasePassword: ""\ndatabaseConnections: 0\nrole: x\nworkers: 0';
    expect(createFolder(yaml).mistakes()).toEqual([
      expect.stringContaining('afterword.yaml:1: database: has no database; expected postgres://'),
      'afterword.yaml:1: encryptionKey: is needed with `database`, the same for all nodes; ' +
        'make one with: openssl rand -base64 32',
      expect.stringContaining('afterword.yaml:2: databasePassword: expected text that is not empty'),
      'afterword.yaml:3: databaseConnections: expected a whole number from 1 to 1000',
      'afterword.yaml:4: role: expected one of all, gateway, dispatcher',
      'afterword.yaml:5: workers: expected a whole number from 1 to 64, or auto',
    ]);
  });

  it('has several faults of its address told', () => {
    expect(withDatabase('postgres://h/d?a=b&sslmode=prefer').mistakes()).toEqual([
      expect.stringContaining('afterword.yaml:2: database: has no user'),
      expect.stringContaining('afterword.yaml:2: database: has a parameter that is not known'),
      expect.stringContaining('afterword.yaml:2: database: sslmode=prefer is refused'),
    ]);
  });

  it('has one password', () => {
    expect(withDatabase('postgres://u:p@h/d', 'databasePassword: q').mistakes()).toEqual([
      'afterword.yaml:3: databasePassword: expected one password; there is one in `database` as well',
    ]);
  });
});

describe('without a database', () => {
  it.each(['gateway', 'dispatcher'])('there is no role %s', role => {
    expect(createFolder(`role: ${role}`).mistakes()).toEqual([
      'afterword.yaml:1: role: expected `all`, or a `database` that is shared with nodes of the other role',
    ]);
  });

  it('its password and its connections have no effect', () => {
    const folder = createFolder('databasePassword: p\ndatabaseConnections: 2');
    expect(folder.load().warnings).toEqual([
      'afterword.yaml:1: databasePassword: has no effect without `database`',
      'afterword.yaml:2: databaseConnections: has no effect without `database`',
    ]);
  });
});

describe('the files of certificates', () => {
  const own = 'postgres://u@h/d?sslmode=require&sslcert=cert.pem&sslkey=key.pem';
  const roots = 'postgres://u@h/d?sslmode=verify-full&sslrootcert=cert.pem';

  it('start from the folder of the file, or from the working directory', () => {
    const folder = withDatabase(roots);
    const { cert } = makeCertificate(folder.path, 'h');
    folder.write('etc/other.yaml', `${KEY}database: ${roots.replace('cert.pem', '../cert.pem')}`);
    expect(folder.load().config.database?.ssl?.ca).toBe(cert);
    expect(folder.load({}, 'etc/other.yaml').config.database?.ssl?.ca).toBe(cert);
    expect(folder.load({ AFTERWORD_DATABASE: roots }, 'etc/other.yaml').config.database?.ssl?.ca).toBe(cert);
  });

  it('must be readable', () => {
    const url = 'postgres://u@h/d?sslmode=verify-ca&sslrootcert=a&sslcert=b&sslkey=.';
    expect(withDatabase(url).mistakes()).toEqual([
      'afterword.yaml:2: database: the file of sslrootcert cannot be read: there is no such file',
      'afterword.yaml:2: database: the file of sslcert cannot be read: there is no such file',
      'afterword.yaml:2: database: the file of sslkey cannot be read: it is a directory',
    ]);
  });

  it('must be what they are given for', () => {
    const folder = withDatabase(
      `${own}&sslmode=verify-full&sslrootcert=ca.pem`.replace('sslmode=require&', ''),
    );
    folder.write('ca.pem', 'CANARY');
    folder.write('cert.pem', '');
    folder.write('key.pem', '-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n');
    const found = folder.mistakes();
    expect(found).toEqual([
      'afterword.yaml:2: database: the file of sslrootcert is not a certificate in PEM',
      'afterword.yaml:2: database: the file of sslcert is not a certificate in PEM',
      'afterword.yaml:2: database: the file of sslkey is not a private key without a passphrase in PEM',
    ]);
    expect(found.join('')).not.toContain('CANARY');
  });

  it('must belong together', () => {
    const folder = withDatabase(own);
    makeCertificate(folder.path, 'h');
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    folder.write('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }));
    expect(folder.mistakes()).toEqual([
      'afterword.yaml:2: database: the key in sslkey does not belong to the certificate in sslcert',
    ]);
  });
});

/** The outcome of a connection as pg makes it from what was configured. */
describe('sslmode', () => {
  const directory = mkdtempSync(join(tmpdir(), 'afterword-tls-'));
  let certificate: Certificate;
  beforeAll(() => {
    certificate = makeCertificate(directory, 'db.internal');
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const roots = `sslrootcert=${join(directory, 'cert.pem')}`;
  const own = `sslcert=${join(directory, 'cert.pem')}&sslkey=${join(directory, 'key.pem')}`;

  it.each([
    ['127.0.0.1', '', 'plain'],
    ['127.0.0.1', 'sslmode=disable', 'plain'],
    ['127.0.0.1', 'sslmode=require', 'encrypted'],
    ['127.0.0.1', `sslmode=require&${own}`, 'encrypted for db.internal'],
    ['localhost', `sslmode=verify-ca&${roots}`, 'encrypted'],
    ['localhost', `sslmode=verify-full&${roots}`, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['127.0.0.1', `sslmode=verify-full&${roots}`, 'encrypted'],
    ['127.0.0.1', 'sslmode=verify-full', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['127.0.0.1', 'sslmode=verify-full&sslrootcert=system', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ])('to %s with %s gives: %s', async (host, parameters, outcome) => {
    await using server = await startTlsDatabase(certificate);
    const { database } = withDatabase(`postgres://u@${host}:${server.port}/d?${parameters}`).load().config;
    const client = new Client({ ...database, ssl: database!.ssl ?? false });
    const failure = await client.connect().then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(failure ?? server.sessions[0]).toBe(outcome);
    if (failure === undefined) await client.end();
  });
});
