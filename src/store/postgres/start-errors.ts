/** Why a database cannot be used, in words for the operator, and never with the password. */
import { StartError } from '../../errors.ts';
import type { ConnectionOptions } from './connection.ts';
import { describe, sqlState } from './faults.ts';

type Words = (connection: ConnectionOptions) => string;

const CHECK_PASSWORD = 'Check the password (in `database`, or in databasePassword)';

/** By SQLSTATE. */
const REFUSALS: Readonly<Record<string, Words>> = {
  '28P01': ({ user }) => `refused the password of user ${user}. ${CHECK_PASSWORD}`,
  '28000': ({ user }) => `does not let user ${user} in from here. See its pg_hba.conf`,
  '3D000': ({ database }) => `has no database of that name. Make it with CREATE DATABASE "${database}"`,
  '42501': ({ user }) =>
    `does not let user ${user} make its tables. GRANT CREATE ON SCHEMA to that user, or give it a schema`,
  '3F000': ({ user }) => `has no schema for the tables of user ${user}. Make one that its search_path names`,
  '25006': () => 'is read-only: a standby, perhaps. Name the primary',
  '53300': () => 'has no connection left. Raise its max_connections, or lower databaseConnections',
  '57P03': () => 'has been starting up for too long',
};

/** By the code of a failed system call. */
const UNREACHABLE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name cannot be resolved at the moment',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ETIMEDOUT: 'it does not answer',
  ENOENT: 'there is no such socket',
  EACCES: 'not permitted',
};

/** A database, as `host:port/name`. */
export function placeOf({ host, port, database }: ConnectionOptions): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`;
}

export function startError(error: unknown, connection: ConnectionOptions): StartError {
  if (error instanceof StartError) return error;
  const place = placeOf(connection);
  const code = sqlState(error);
  if (code !== undefined) {
    const words = REFUSALS[code]?.(connection) ?? 'cannot be used';
    return new StartError(`the database ${place} ${words} (${describe(error)})`);
  }
  return new StartError(`cannot connect to the database ${place}: ${whyUnreachable(error)}`);
}

function whyUnreachable(error: unknown): string {
  const { code, message } = (
    error instanceof AggregateError ? error.errors[0] : error
  ) as NodeJS.ErrnoException;
  if (message.startsWith('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password')) {
    return `it asks for a password, and none is given. ${CHECK_PASSWORD}`;
  }
  if (message === 'The server does not support SSL connections') {
    return 'it does not support TLS. Set it up there, or give sslmode=disable';
  }
  if (message.includes('timeout')) return UNREACHABLE['ETIMEDOUT']!;
  return UNREACHABLE[code ?? ''] ?? message;
}
