/**
 * Waits for the end of a run, by asking the service again and again for as long as it answers "not yet". A
 * service that is away, restarting or cut off is asked again after a pause, which grows while it stays away;
 * the run itself goes on meanwhile. It ends with the run, with a refusal, or when the time is up.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import { formatDuration } from '../config/units.ts';
import type { Client } from './client.ts';
import { Failed, type Io, Interrupted, isTerminal } from './output.ts';
import { createProgress, type Progress } from './progress.ts';
import { isEnded, openRun, type RunAnswer } from './run-answer.ts';

const WAIT_MS = 30_000;
/** Who reads along sees soon that a queued run has begun. */
const TERMINAL_WAIT_MS = 1_000;
const PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

export interface Following {
  readonly client: Client;
  readonly runId: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly io: Io;
}

/** Ctrl-C ends the waiting and not the run. */
export async function followRun(following: Following): Promise<RunAnswer> {
  const { io, runId } = following;
  const hangUp = new AbortController();
  const interrupted = io.untilStopped().then(() => {
    throw new Interrupted(`the run goes on; look again with: ${lookAgain(following)}`);
  });
  const progress = createProgress(io.stderr, runId, following.clock);
  try {
    return await Promise.race([poll(following, progress, hangUp.signal), interrupted]);
  } catch (error) {
    hangUp.abort();
    throw error;
  } finally {
    progress.end();
  }
}

async function poll(following: Following, progress: Progress, signal: AbortSignal): Promise<RunAnswer> {
  const { client, runId, timeoutMs, clock, io } = following;
  const longest = isTerminal(io.stderr) ? TERMINAL_WAIT_MS : WAIT_MS;
  const deadline = clock.elapsed() + timeoutMs;
  let pause = PAUSE_MS;
  progress.tell('waiting');
  for (let left = timeoutMs; left > 0; left = deadline - clock.elapsed()) {
    const asked = clock.elapsed();
    const seen = await openRun(client, runId, { waitMs: Math.min(longest, left), signal });
    signal.throwIfAborted();
    if (seen.kind === 'run') {
      if (isEnded(seen.facts.state)) return seen;
      progress.tell(seen.facts.state);
      pause = PAUSE_MS;
      // One that is stopping answers at once.
      if (clock.elapsed() - asked > PAUSE_MS) continue;
    } else {
      if (!seen.passing) throw new Failed(seen.message);
      progress.tell('out of reach, trying again');
    }
    await sleep(Math.min(pause, left), undefined, { signal });
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  const time = formatDuration(timeoutMs);
  throw new Failed(`the run has not ended within ${time}; look again with: ${lookAgain(following)}`);
}

function lookAgain({ io, runId }: Following): string {
  return `${io.program} runs show ${runId} --wait`;
}
