/**
 * Which errors are of the environment (try again later) and which are of one operation (tell its caller).
 * What is no answer of the server at all is of the environment: no connection, or none any more.
 */
import { DatabaseError } from 'pg';

/** Codes (SQLSTATE), or their beginnings, that say nothing about the operation. */
const ENVIRONMENTAL: readonly string[] = [
  '08', // the connection
  '25006', // read-only: a standby, or the disk is full
  '26000', // a prepared statement is gone, as a pooler may have it: a new connection prepares it again
  '28', // who may connect
  '3D000', // the database is not there, as while it is restored
  '40', // serialization, deadlock, or nobody knows whether it was committed
  '42P05', // a prepared statement is there already
  '53', // out of disk, memory or connections
  '55P03', // a lock was not to be had in time
  '57', // stopped by an operator, starting up, cancelled
  '58', // the server's own system
];

/** The plan of a prepared statement no longer fits, after a change of the schema. */
const STALE_PLAN = /^cached plan must not change/;

export const UNIQUE_VIOLATION = '23505';
export const CHECK_VIOLATION = '23514';
export const UNDEFINED_TABLE = '42P01';
export const LOCK_NOT_AVAILABLE = '55P03';

export function sqlState(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined;
}

export function isEnvironmental(error: unknown): boolean {
  const code = sqlState(error);
  if (code !== undefined) {
    return ENVIRONMENTAL.some(beginning => code.startsWith(beginning)) || STALE_PLAN.test(messageOf(error));
  }
  return !(error instanceof TypeError || error instanceof RangeError);
}

export function describe(error: unknown): string {
  const code = sqlState(error);
  if (code !== undefined) return `${messageOf(error)} (SQLSTATE ${code})`;
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return messageOf(error);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
