/**
 * Waits for the end of what goes on in the service, by asking it again and again for as long as it answers "not
 * yet". A service that is away, restarting or cut off is asked again after a pause, which grows while it stays
 * away; what is waited for goes on meanwhile. It ends with that, with a refusal, or when the time is up.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import { formatDuration } from '../config/units.ts';
import { type Client, type Fault, isFault } from './client.ts';
import { Failed, type Io, Interrupted, isTerminal } from './output.ts';
import { createProgress, type Progress } from './progress.ts';
import { isEnded, openRun, type RunAnswer } from './run-answer.ts';

const WAIT_MS = 30_000;
/** Who reads along sees soon that a queued run has begun. */
const TERMINAL_WAIT_MS = 1_000;
const PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** How one who is patient asks again: each pause is longer than the one before, up to a bound. */
export function* pauses(): Generator<number, never> {
  for (let pause = PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) yield pause;
}

export interface AskOptions {
  /** For this long the service may put off its answer. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

export interface Following<Seen> {
  /** What goes on, for people. */
  readonly what: string;
  /** Which one it is. */
  readonly id: string;
  readonly ask: (options: AskOptions) => Promise<Seen | Fault>;
  /** How it stands; undefined once it has ended. */
  readonly standing: (seen: Seen) => string | undefined;
  /** The command by which to look at it later. */
  readonly lookAgain: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly io: Io;
}

export interface RunFollowing extends Pick<Following<RunAnswer>, 'timeoutMs' | 'clock' | 'io'> {
  readonly client: Client;
  readonly runId: string;
}

export function followRun({ client, runId, ...waiting }: RunFollowing): Promise<RunAnswer> {
  return follow<RunAnswer>({
    what: 'the run',
    id: runId,
    ask: options => openRun(client, runId, options),
    standing: ({ facts: { state } }) => (isEnded(state) ? undefined : state),
    lookAgain: `runs show ${runId} --wait`,
    ...waiting,
  });
}

/** Ctrl-C ends the waiting and nothing else. */
export async function follow<Seen extends { readonly kind: string }>(
  following: Following<Seen>,
): Promise<Seen> {
  const { io, what, id } = following;
  const hangUp = new AbortController();
  const interrupted = io.untilStopped().then(() => {
    throw new Interrupted(`${what} goes on; look again with: ${lookAgain(following)}`);
  });
  const progress = createProgress(io.stderr, id, following.clock);
  try {
    return await Promise.race([poll(following, progress, hangUp.signal), interrupted]);
  } catch (error) {
    hangUp.abort();
    throw error;
  } finally {
    progress.end();
  }
}

async function poll<Seen extends { readonly kind: string }>(
  following: Following<Seen>,
  progress: Progress,
  signal: AbortSignal,
): Promise<Seen> {
  const { ask, standing, what, timeoutMs, clock, io } = following;
  const longest = isTerminal(io.stderr) ? TERMINAL_WAIT_MS : WAIT_MS;
  const deadline = clock.elapsed() + timeoutMs;
  let away = pauses();
  progress.tell('waiting');
  for (let left = timeoutMs; left > 0; left = deadline - clock.elapsed()) {
    const asked = clock.elapsed();
    const seen = await ask({ waitMs: Math.min(longest, left), signal });
    signal.throwIfAborted();
    if (isFault(seen)) {
      if (!seen.passing) throw new Failed(seen.message);
      progress.tell('out of reach, trying again');
    } else {
      const state = standing(seen);
      if (state === undefined) return seen;
      progress.tell(state);
      away = pauses();
      // Not every answer is put off: one that is stopping gives it at once.
      if (clock.elapsed() - asked > PAUSE_MS) continue;
    }
    await sleep(Math.min(away.next().value, left), undefined, { signal });
  }
  const time = formatDuration(timeoutMs);
  throw new Failed(`${what} has not ended within ${time}; look again with: ${lookAgain(following)}`);
}

function lookAgain({ io, lookAgain }: Pick<Following<never>, 'io' | 'lookAgain'>): string {
  return `${io.program} ${lookAgain}`;
}
