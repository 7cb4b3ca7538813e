/**
 * The address of a PostgreSQL database as an operator writes it, to its parts and back. Read by its own
 * grammar (RFC 3986, with the parameters of libpq): a general URL parser would forgive or refuse other things.
 * What is wrong is told without showing any of it, since the password may be anywhere in it.
 */
import { isIPv6 } from 'node:net';

export const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof SSL_MODES)[number];

/** Parameters that name a file. */
export const SSL_FILES = ['sslrootcert', 'sslcert', 'sslkey'] as const;
export type SslFile = (typeof SSL_FILES)[number];

/** In `sslrootcert`: the roots that come with Node, not a file. */
export const SYSTEM_ROOTS = 'system';

export const PARAMETERS = ['host', 'sslmode', ...SSL_FILES] as const;

export interface DatabaseUrl {
  /** A name, an address, or the folder of a Unix socket, which starts with a slash. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password?: string;
  readonly sslmode: SslMode;
  /** As they are written; a path is relative to whatever the URL stands in. */
  readonly files: Readonly<Partial<Record<SslFile, string>>>;
}

export const DATABASE_URL =
  'postgres://user:password@host:5432/database, with characters that are special in a URL percent-encoded';

const DEFAULT_PORT = 5432;
const LAST_PORT = 65_535;

// Whatever is special in a URL ends a part, so a password that has it bare does not fit, or fits nowhere else.
const GRAMMAR =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^\s:@/?#]*)(?::(?<password>[^\s@/?#]*))?@)?(?:\[(?<six>[\da-f:.]+)\]|(?<name>[^\s:@/?#[\]]*))(?::(?<port>\d{1,5}))?(?:\/(?<database>[^\s/?#]*))?(?:\?(?<query>[^\s?#]*))?$/i;

/** Everything that is wrong with it, where it is not such a URL. */
export function parseDatabaseUrl(text: string): DatabaseUrl | { readonly faults: readonly string[] } {
  const parts = GRAMMAR.exec(text)?.groups;
  if (parts === undefined || !isDecodable(text)) return { faults: [`expected ${DATABASE_URL}`] };
  const part = (name: string): string => decodeURIComponent(parts[name] ?? '');
  const { values, faults } = readParameters(parts['query'] ?? '');
  const [host = '', ...others] = [part('six'), part('name'), values.get('host')].filter(Boolean);
  const [user, password, database] = [part('user'), part('password'), part('database')];
  const port = Number(parts['port'] ?? DEFAULT_PORT);
  const found = [
    ...missing({ user, host, database }),
    ...hostFaults([host, ...others]),
    ...(port < 1 || port > LAST_PORT ? [`expected a port from 1 to ${LAST_PORT}`] : []),
    ...faults,
    ...sslFaults(values, host),
  ];
  if (found.length > 0) return { faults: found };
  const files = SSL_FILES.filter(name => values.has(name)).map(name => [name, values.get(name)]);
  return {
    host,
    port,
    database,
    user,
    ...(password !== '' && { password }),
    sslmode: sslModeOf(values) ?? 'disable',
    files: Object.fromEntries(files) as DatabaseUrl['files'],
  };
}

/** Every part written out; reads to the same. */
export function formatDatabaseUrl({ host, port, database, user, password, sslmode, files }: DatabaseUrl) {
  const socket = host.startsWith('/');
  const secret = password === undefined ? '' : `:${encodePart(password)}`;
  const place = socket ? '' : isIPv6(host) ? `[${host}]` : encodePart(host);
  const parameters = [...(socket ? [['host', host]] : []), ['sslmode', sslmode], ...Object.entries(files)];
  const query = parameters.map(([name, value]) => `${name}=${encodeValue(value!)}`).join('&');
  return `postgres://${encodePart(user)}${secret}@${place}:${port}/${encodePart(database)}?${query}`;
}

function readParameters(query: string) {
  const values = new Map<string, string>();
  const faults = new Set<string>();
  for (const piece of query.split('&').filter(Boolean)) {
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/.exec(piece)!;
    if (!PARAMETERS.some(known => known === name)) {
      faults.add(`has a parameter that is not known; the known ones are ${PARAMETERS.join(', ')}`);
    } else if (values.has(name)) faults.add(`has the parameter ${name} twice`);
    else if (value === '') faults.add(`has the parameter ${name} without a value`);
    else values.set(name, decodeURIComponent(value));
  }
  return { values, faults: [...faults] };
}

function missing(needed: Readonly<Record<string, string>>): string[] {
  const names = Object.keys(needed).filter(name => needed[name] === '');
  return names.length === 0 ? [] : [`has no ${names.join(' and no ')}; expected ${DATABASE_URL}`];
}

function hostFaults(hosts: readonly (string | undefined)[]): string[] {
  if (hosts.length === 1 && !hosts[0]?.includes(',')) return [];
  return ['has several hosts; expected one: a name or an address that follows the primary server'];
}

function sslModeOf(values: ReadonlyMap<string, string>): SslMode | undefined {
  return SSL_MODES.find(mode => mode === values.get('sslmode'));
}

function sslFaults(values: ReadonlyMap<string, string>, host: string): string[] {
  const mode = sslModeOf(values) ?? 'disable';
  const given = values.get('sslmode');
  if (given === 'prefer' || given === 'allow') {
    return [
      `sslmode=${given} is refused: it falls back to plain text without a word; ` +
        `expected one of ${SSL_MODES.join(', ')}`,
    ];
  }
  if (given !== undefined && given !== mode) return [`sslmode: expected one of ${SSL_MODES.join(', ')}`];
  if (mode !== 'disable' && host.startsWith('/')) return ['sslmode: expected disable with a Unix socket'];
  return fileFaults(values, mode);
}

function fileFaults(values: ReadonlyMap<string, string>, mode: SslMode): string[] {
  const faults: string[] = [];
  const roots = values.get('sslrootcert');
  if (mode === 'disable' && SSL_FILES.some(name => values.has(name))) {
    return ['has certificates and no encryption; expected sslmode=verify-full, verify-ca or require too'];
  }
  if (mode === 'require' && roots !== undefined) {
    faults.push('sslrootcert has no effect with sslmode=require; expected verify-full or verify-ca');
  }
  if (mode === 'verify-ca' && (roots === undefined || roots === SYSTEM_ROOTS)) {
    faults.push(
      'sslmode=verify-ca needs the file of an authority of your own as sslrootcert: public ones certify ' +
        'anybody, under some name; expected it, or verify-full',
    );
  }
  if (values.has('sslcert') !== values.has('sslkey')) faults.push('expected both or none of sslcert, sslkey');
  return faults;
}

function isDecodable(text: string): boolean {
  try {
    return !decodeURIComponent(text).includes('\0');
  } catch {
    return false;
  }
}

function encodePart(text: string): string {
  return text.replaceAll(/[%:@/?#\s]/g, special => encodeURIComponent(special));
}

function encodeValue(text: string): string {
  return text.replaceAll(/[%&?#\s]/g, special => encodeURIComponent(special));
}
