/**
 * Which errors are of the environment (try again later) and which are of one operation (tell its caller).
 */

/** Primary result codes of SQLite that say nothing about the operation. */
const ENVIRONMENTAL: ReadonlySet<number> = new Set([
  5, // BUSY
  7, // NOMEM
  8, // READONLY
  10, // IOERR
  13, // FULL
  14, // CANTOPEN
]);

interface SqliteError extends Error {
  readonly errcode: number;
}

export function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'ERR_SQLITE_ERROR';
}

/** The result code without what extends it. */
export function primaryCode(error: SqliteError): number {
  return error.errcode & 0xff;
}

export function isEnvironmental(error: unknown): boolean {
  if (isSqliteError(error)) return ENVIRONMENTAL.has(primaryCode(error));
  // An error of a system call: the spool directory could not be synced.
  return error instanceof Error && 'syscall' in error;
}

export function describe(error: unknown): string {
  if (!isSqliteError(error)) return error instanceof Error ? error.message : String(error);
  return `${error.message} (SQLite ${error.errcode})`;
}
