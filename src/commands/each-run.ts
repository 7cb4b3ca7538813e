/**
 * Does the same to several runs, or their deliveries, one after the other: one that is refused does not keep
 * the others from it.
 */
import { type Fault, isFault } from './client.ts';
import { CheckFailed, type Io, printError } from './output.ts';

export interface Deed<Done> {
  readonly act: (runId: string) => Promise<Done | Fault>;
  readonly tell: (runId: string, done: Done) => void;
}

/** Gives how many were refused; each was told. */
export async function toEach<Done extends { readonly kind: string }>(
  runIds: readonly string[],
  { act, tell }: Deed<Done>,
  io: Io,
): Promise<number> {
  let refused = 0;
  for (const runId of runIds) {
    const done = await act(runId);
    if (isFault(done)) {
      printError(io, `${runId}: ${done.message}`);
      refused += 1;
    } else tell(runId, done);
  }
  return refused;
}

/** With the exit code that this has. */
export function checkRefused(refused: number, what: string): void {
  if (refused > 0) throw new CheckFailed(`${refused} were not ${what}`);
}
