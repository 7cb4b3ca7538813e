/**
 * The asynchronous calls that the bench makes: to an app that never answers, or to one of those that answer at
 * once, which differ in how many runs they take at a time.
 */
import { PROJECT, REQUEST_BYTES } from '../workload.ts';

export const HELD = 'held';
export const CONCURRENCIES = [4, 32] as const;
export type Concurrency = (typeof CONCURRENCIES)[number];

/** What the held app takes at a time. */
export const HELD_AT_ONCE = 4;

export const quickApp = (concurrency: Concurrency): string => `quick-${concurrency}`;

/** The whole request as it goes over the wire. */
export function asyncRequestOf(app: string, token: string): string {
  const body = JSON.stringify({ fill: '.'.repeat(REQUEST_BYTES - '{"fill":""}'.length) });
  const head = [
    `POST /v4/${PROJECT}/${app}/run?async=true HTTP/1.1`,
    'Host: calls.example',
    'User-Agent: bench',
    'Accept: */*',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

const BODY = /^\{"run_id":"([0-9a-f-]{36})"\}$/;
const BODY_BYTES = 49;
const HEAD_END = '\r\n\r\n';

/** The run that an answer tells of; undefined while it is not whole. Throws where it is no 202 as it should be. */
export function runIdIn(answer: string): string | undefined {
  const end = answer.indexOf(HEAD_END);
  const body = answer.slice(end + HEAD_END.length);
  if (end === -1 || body.length < BODY_BYTES) return undefined;
  const runId = answer.startsWith('HTTP/1.1 202 ') ? BODY.exec(body)?.[1] : undefined;
  if (runId === undefined) throw new Error(`an answer is not as it should be:\n${answer}`);
  return runId;
}
