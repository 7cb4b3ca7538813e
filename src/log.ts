/**
 * The one place that makes a logger. Lines are JSON on standard error, or readable ones on a terminal;
 * standard output belongs to a command's data.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

export type { Logger };

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface LogOptions {
  level: LogLevel;
  /** Readable lines in place of JSON. */
  pretty?: boolean;
  /** Other processes write to the same standard error. */
  shared?: boolean;
  destination?: DestinationStream;
}

/** A pipe takes up to 4 KiB in one piece (PIPE_BUF); beyond that the lines of two processes could mix. */
const WHOLE_LINES = { minLength: 2048, maxWrite: 4096 };

export function createLogger({
  level,
  pretty: readable = false,
  shared = false,
  destination,
}: LogOptions): Logger {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  if (readable && destination === undefined) {
    return pino(
      options,
      pretty({
        destination: 2,
        ignore: 'event',
        singleLine: true,
        colorize: process.stderr.hasColors?.() ?? false,
        sync: true,
      }),
    );
  }
  // Lines go out together while there are many; a quiet service's are seen soon all the same.
  const gathered = { dest: 2, sync: false, minLength: 4096, periodicFlush: 100, ...(shared && WHOLE_LINES) };
  return pino(options, destination ?? pino.destination(gathered));
}

export const silentLogger: Logger = pino({ level: 'silent' });
