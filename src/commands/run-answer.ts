/**
 * One run as the service tells it. Its answer can be large, and stands last: what comes before it is read
 * from the beginning, and the whole is passed on as it came, never parsed and written again.
 */
import { formatDuration } from '../config/units.ts';
import { brokenOff, strange } from './ask.ts';
import { type Answer, type Client, type Fault, objectIn, PEEK_BYTES, peek } from './client.ts';
import type { FinalRunState, RunState } from '../store/runs.ts';

/** For whatever is not the wait that was asked for: the way there and back, a slow disk. */
const SLACK_MS = 15_000;

export interface RunFacts {
  readonly run_id: string;
  readonly app: string;
  readonly state: RunState;
  readonly created_at: string;
  readonly started_at?: string;
  readonly ended_at?: string;
  readonly starts: number;
  readonly cancelling?: true;
  readonly status_code?: number;
  readonly error?: { readonly type: string; readonly message?: string };
  readonly delivery?: {
    readonly target: string;
    readonly state?: string;
    readonly reason?: string;
    readonly attempts?: number;
  };
}

export interface RunAnswer {
  readonly kind: 'run';
  /** Without the result, and where that is large without the error. */
  readonly facts: RunFacts;
  /** The beginning of the answer. */
  readonly head: string;
  /** `head` is all of it. */
  readonly whole: boolean;
  /** All of it. */
  readonly body: AsyncIterable<Uint8Array>;
}

export function isEnded(state: RunState): state is FinalRunState {
  return state !== 'queued' && state !== 'running';
}

/** `waitMs`: how long the service may wait for the run to end before it answers. */
export async function openRun(
  client: Client,
  runId: string,
  { waitMs = 0, signal }: { waitMs?: number; signal?: AbortSignal } = {},
): Promise<RunAnswer | Fault> {
  const wait = waitMs > 0 ? `?wait=${formatDuration(Math.ceil(waitMs))}` : '';
  const reply = await client.send({
    method: 'GET',
    path: `${pathOf(runId)}${wait}`,
    timeoutMs: waitMs + SLACK_MS,
    ...(signal !== undefined && { signal }),
  });
  return reply.kind === 'fault' ? reply : readRun(reply);
}

/** The run as it is after it was marked, and stopped if that did not take long. */
export async function cancelRun(client: Client, runId: string): Promise<RunAnswer | Fault> {
  const request = { method: 'POST', path: `${pathOf(runId)}/cancel`, timeoutMs: SLACK_MS };
  const reply = await client.send(request);
  return reply.kind === 'fault' ? reply : readRun(reply);
}

function pathOf(runId: string): string {
  return `/_runs/${encodeURIComponent(runId)}`;
}

async function readRun(answer: Answer): Promise<RunAnswer | Fault> {
  if (answer.status !== 200) return strange(answer, 'a run');
  try {
    const { head: bytes, whole, body } = await peek(answer.body, PEEK_BYTES);
    const head = bytes.toString();
    const facts = objectIn(whole ? head : beforeResult(head));
    if (facts['state'] === undefined) return strange(answer, 'a run');
    return { kind: 'run', facts: facts as unknown as RunFacts, head, whole, body };
  } catch (error) {
    return brokenOff(error);
  }
}

// Within a string of JSON a quote has a backslash before it, so this can only be a key.
const ANSWER_KEY = /,(?="(?:result|error|result_omitted)":)/;

function beforeResult(head: string): string {
  return `${head.split(ANSWER_KEY, 1)[0]}}`;
}

/** What the run ended with, as text to lay out; empty where there is nothing yet. */
export function answerIn(head: string): string {
  const at = head.search(ANSWER_KEY);
  return at < 0 ? '' : `{${head.slice(at + 1)}`;
}
