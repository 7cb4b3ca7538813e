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
  destination?: DestinationStream;
}

export function createLogger({ level, pretty: readable = false, destination }: LogOptions): Logger {
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
  const gathered = { dest: 2, sync: false, minLength: 4096, periodicFlush: 100 };
  return pino(options, destination ?? pino.destination(gathered));
}

export const silentLogger: Logger = pino({ level: 'silent' });
