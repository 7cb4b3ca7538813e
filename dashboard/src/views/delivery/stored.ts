/**
 * Answers of the API that end with a body as it is stored: what is known is read, and the body stays the text
 * that it is.
 */
import type { DeliveryDetail, RunWithAnswer } from '../../api/shapes.ts';
import { memberSpan } from '../../json-text.ts';

export interface StoredDelivery {
  /** Without the body. */
  readonly detail: DeliveryDetail;
  /** Undefined where it is gone. */
  readonly body: string | undefined;
  /** Of the call, as the body tells it. */
  readonly ranMs: number | undefined;
}

export interface StoredRun {
  /** Without the result. */
  readonly run: RunWithAnswer;
  readonly result: string | undefined;
}

export function readDelivery(text: string): StoredDelivery {
  const { known, member } = takeOut(text, ['request', 'body']);
  const body = member === 'null' ? undefined : member;
  return {
    detail: known as DeliveryDetail,
    body,
    ranMs: body === undefined ? undefined : numberIn(body, 'run_time_ms'),
  };
}

export function readRun(text: string): StoredRun {
  const { known, member } = takeOut(text, ['result']);
  return { run: known as RunWithAnswer, result: member };
}

function takeOut(
  text: string,
  keys: readonly string[],
): { readonly known: unknown; readonly member: string | undefined } {
  const span = memberSpan(text, keys);
  if (span === undefined) return { known: JSON.parse(text), member: undefined };
  const { start, end } = span;
  return {
    known: JSON.parse(`${text.slice(0, start)}null${text.slice(end)}`),
    member: text.slice(start, end),
  };
}

function numberIn(body: string, key: string): number | undefined {
  const span = memberSpan(body, [key]);
  const value = span === undefined ? Number.NaN : Number(body.slice(span.start, span.end));
  return Number.isNaN(value) ? undefined : value;
}
