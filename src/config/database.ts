/**
 * Checks what has to do with a database that nodes share: where it is, how its connections are encrypted, and
 * what else must be given along with it. Files of certificates are read here.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { DatabaseConfig, DatabaseTls, Role } from './config.ts';
import { type DatabaseUrl, SSL_FILES, type SslFile, SYSTEM_ROOTS } from './database-url.ts';
import { readText } from './files.ts';
import { MAKE_KEY } from './keys.ts';
import type { Settings } from './settings.ts';

/** The keys as they were given, as far as they are right. */
export interface DatabaseKeys {
  readonly database?: DatabaseUrl;
  readonly databasePassword?: string;
  readonly databaseConnections?: number;
  readonly role?: Role;
}

export interface CheckedDatabase {
  readonly config: DatabaseConfig;
  /** As it was given, with absolute paths; without the password where that was given apart. */
  readonly url: DatabaseUrl;
}

const PATH = ['database'];

/** Undefined where none is given. */
export function checkDatabase(settings: Settings, keys: DatabaseKeys): CheckedDatabase | undefined {
  checkCompany(settings, keys);
  const { database: given, databasePassword, databaseConnections: connections } = keys;
  if (given === undefined || connections === undefined) return undefined;
  if (given.password !== undefined && settings.has(['databasePassword'])) {
    settings.mistake(['databasePassword'], 'expected one password; there is one in `database` as well');
  }
  const url = { ...given, files: absolute(settings, given.files) };
  const { host, port, database, user, password = databasePassword } = url;
  const ssl = checkTls(settings, url);
  return {
    config: {
      host,
      port,
      database,
      user,
      ...(password !== undefined && { password }),
      ...(ssl !== undefined && { ssl }),
      connections,
    },
    url,
  };
}

/** What needs a database, and what a database needs, whether or not that is right itself. */
function checkCompany(settings: Settings, { role = 'all' }: DatabaseKeys): void {
  if (settings.has(PATH)) {
    if (settings.has(['encryptionKey'])) return;
    const needed = `is needed with \`database\`, the same for all nodes; make one with: ${MAKE_KEY}`;
    settings.mistake(['encryptionKey'], needed, PATH);
    return;
  }
  if (role !== 'all') {
    settings.mistake(['role'], 'expected `all`, or a `database` that is shared with nodes of the other role');
  }
  for (const key of ['databasePassword', 'databaseConnections']) {
    if (settings.has([key])) settings.warn([key], 'has no effect without `database`');
  }
}

function absolute(settings: Settings, files: DatabaseUrl['files']): DatabaseUrl['files'] {
  const entries = Object.entries(files).map(([name, path]) =>
    name === 'sslrootcert' && path === SYSTEM_ROOTS ? [name, path] : [name, settings.resolve(PATH, path)],
  );
  return Object.fromEntries(entries) as DatabaseUrl['files'];
}

function checkTls(settings: Settings, { sslmode, files }: DatabaseUrl): DatabaseTls | undefined {
  if (sslmode === 'disable') return undefined;
  const texts: Partial<Record<SslFile, string>> = {};
  for (const name of SSL_FILES) {
    const file = files[name];
    if (file === undefined || (name === 'sslrootcert' && file === SYSTEM_ROOTS)) continue;
    const read = readText(file);
    if ('text' in read) texts[name] = read.text;
    else settings.mistake(PATH, `the file of ${name} cannot be read: ${read.fault}`);
  }
  for (const fault of pemFaults(texts)) settings.mistake(PATH, fault);
  const { sslrootcert: ca, sslcert: cert, sslkey: key } = texts;
  return {
    rejectUnauthorized: sslmode !== 'require',
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(sslmode === 'verify-ca' && { checkServerIdentity: anyName }),
  };
}

/** In the place of Node's own check, which compares the name. */
function anyName(): undefined {
  return undefined;
}

function pemFaults({ sslrootcert, sslcert, sslkey }: Readonly<Partial<Record<SslFile, string>>>): string[] {
  const faults: string[] = [];
  const tell = (name: SslFile, what: string) => faults.push(`the file of ${name} is not ${what} in PEM`);
  if (sslrootcert !== undefined && certificateOf(sslrootcert) === undefined) {
    tell('sslrootcert', 'a certificate');
  }
  const certificate = sslcert === undefined ? undefined : certificateOf(sslcert);
  if (sslcert !== undefined && certificate === undefined) tell('sslcert', 'a certificate');
  const key = sslkey === undefined ? undefined : privateKeyOf(sslkey);
  if (sslkey !== undefined && key === undefined) tell('sslkey', 'a private key without a passphrase');
  if (certificate && key && !certificate.checkPrivateKey(key)) {
    faults.push('the key in sslkey does not belong to the certificate in sslcert');
  }
  return faults;
}

function certificateOf(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function privateKeyOf(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
