/**
 * A log whose lines a test can read.
 */
import { createLogger, type Logger } from '../../src/log.ts';

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export function captureLog(): { readonly log: Logger; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) };
  return { log: createLogger({ level: 'info', destination }), lines };
}
