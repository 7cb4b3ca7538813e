/**
 * Asks whoever sits at the terminal for a yes, before something that cannot be taken back.
 */
import { type Io, isTerminal } from './output.ts';

/** Somebody reads the question, and can answer it. */
export function canAsk({ stdin, stderr }: Io): boolean {
  return isTerminal(stdin) && isTerminal(stderr);
}

/** Anything but a yes is a no. */
export async function confirmed(io: Io, question: string): Promise<boolean> {
  io.stderr.write(`${question} [y/N] `);
  let line = '';
  for await (const chunk of io.stdin) {
    line += Buffer.from(chunk).toString();
    if (line.includes('\n')) break;
  }
  return /^\s*y(?:es)?\s*$/i.test(line.split('\n', 1)[0]!);
}
