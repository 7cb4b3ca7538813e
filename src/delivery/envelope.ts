/**
 * The body of a delivery, and for `cortex` what the caller gets: one JSON object around the app's answer.
 * The head is written before the answer is complete and the tail after it, so that a long answer can pass
 * through; the answer's own JSON stands in between as it came.
 */
import { type AnswerError, encodeResult, isJsonType, type ResultKind } from './result.ts';

export interface RunIdentity {
  readonly runId: string;
  readonly projectId: string;
  readonly app: string;
}

/** What is known of an answer from its head. */
export interface AnswerHead {
  /** What the caller got. */
  readonly statusCode: number;
  readonly contentType?: string | undefined;
  /** Where the answer's Content-Encoding could not be undone. */
  readonly contentEncoding?: string | undefined;
}

export interface Finish {
  readonly runTimeMs: number;
  /** When the answer was complete, in milliseconds since the epoch. */
  readonly completedAt: number;
}

/** Everything before the result. */
function opening({ runId, projectId, app }: RunIdentity, { statusCode }: AnswerHead): string {
  // Ids and names hold nothing that JSON escapes.
  return `{"run_id":"${runId}","project_id":"${projectId}","app":"${app}","status_code":${statusCode}`;
}

/** Everything after the result. */
function closing({ runTimeMs, completedAt }: Finish): string {
  const milliseconds = Math.round(runTimeMs * 1000) / 1000;
  return `,"run_time_ms":${milliseconds},"timestamp":"${new Date(completedAt).toISOString()}"}`;
}

const isQuoted = (kind: ResultKind): boolean => kind === 'text' || kind === 'bytes';

/** Up to and including the beginning of the result. */
export function envelopeHead(run: RunIdentity, head: AnswerHead, kind: ResultKind): string {
  if (!isQuoted(kind)) return `${opening(run, head)},"result":`;
  const encoding = kind === 'bytes' ? ',"result_encoding":"base64"' : '';
  return `${opening(run, head)}${descriptionOf(head)}${encoding},"result":"`;
}

/** From the end of the result on. */
export function envelopeTail(kind: ResultKind, finish: Finish): string {
  return `${isQuoted(kind) ? '"' : ''}${closing(finish)}`;
}

/** A whole envelope around an answer that is in memory, as the first of `kinds` that fits it. */
export function envelopeOf(
  run: RunIdentity,
  head: AnswerHead,
  bytes: Uint8Array,
  kinds: readonly ResultKind[],
  finish: Finish,
): Buffer {
  // A stream of no events is an empty array; of anything else, no bytes are no result.
  if (bytes.length === 0 && kinds[0] !== 'events') return emptyEnvelope(run, head, finish);
  const { kind, pieces, error } = encodeResult(bytes, kinds, head.contentType);
  if (error !== undefined) return errorEnvelope(run, head, error, finish);
  return Buffer.concat([
    Buffer.from(envelopeHead(run, head, kind)),
    ...pieces,
    Buffer.from(envelopeTail(kind, finish)),
  ]);
}

/** An answer without a body: HEAD, 204, 304, or simply nothing. */
export function emptyEnvelope(run: RunIdentity, head: AnswerHead, finish: Finish): Buffer {
  return Buffer.from(`${opening(run, head)},"result":null${closing(finish)}`);
}

export function errorEnvelope(
  run: RunIdentity,
  head: AnswerHead,
  error: AnswerError,
  finish: Finish,
): Buffer {
  const { type, message } = error;
  return Buffer.from(`${opening(run, head)},"error":${JSON.stringify({ type, message })}${closing(finish)}`);
}

const ERROR_ENVELOPE = /^\{"run_id":"[^"]*","project_id":"[^"]*","app":"[^"]*","status_code":\d+,"error":/;
/** Longer than what that can match: names have 63 characters at most. */
const OPENING_BYTES = 300;

/** The type of the error in an envelope, where there is one in place of a result. */
export function errorTypeIn(envelope: Uint8Array): string | undefined {
  const bytes = Buffer.from(envelope.buffer, envelope.byteOffset, envelope.byteLength);
  if (!ERROR_ENVELOPE.test(bytes.toString('latin1', 0, OPENING_BYTES))) return undefined;
  const { error } = JSON.parse(bytes.toString()) as { error: AnswerError };
  return error.type;
}

/** An answer beyond the limit: it is said to be missing, never shortened. */
export function omittedEnvelope(
  run: RunIdentity,
  head: AnswerHead,
  omitted: { readonly bytes: number; readonly limit: number },
  finish: Finish,
): Buffer {
  const { bytes, limit } = omitted;
  const note = `"result_omitted":{"bytes":${bytes},"limit":${limit}}`;
  const isJson = head.contentType !== undefined && isJsonType(head.contentType);
  return Buffer.from(`${opening(run, head)}${isJson ? '' : descriptionOf(head)},${note}${closing(finish)}`);
}

/** `content_type` of an answer that is not JSON, and `content_encoding` where it is still encoded. */
function descriptionOf({ contentType, contentEncoding }: AnswerHead): string {
  const type = contentType === undefined ? '' : `,"content_type":${JSON.stringify(contentType)}`;
  return contentEncoding === undefined
    ? type
    : `${type},"content_encoding":${JSON.stringify(contentEncoding)}`;
}
