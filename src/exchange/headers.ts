/**
 * Which headers pass between caller and app, in flat name/value lists as they are on the wire, so that
 * case, order and repetition survive. Hop-by-hop fields end here, and so do those that `Connection` names
 * (RFC 9110, section 7.6.1), before anything of ours is added.
 */

import type { TraceContext } from '../trace.ts';

/** Flat list: name, value, name, value, … */
export type RawHeaders = readonly string[];

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/** Never passed to an app: made here, meant for the service alone, or answered by it. */
const NOT_FOR_APPS = new Set([
  'host',
  'expect',
  'trailer',
  'x-request-id',
  'x-webhook-secret',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

/** Of a cortex call: replaced by what is so for all of them. */
const NOT_FOR_FUNCTIONS = new Set(['accept-encoding', 'content-type', 'content-length']);

/** Of a call that is traced: replaced by its own. */
const OF_THE_TRACE = new Set(['traceparent', 'tracestate']);

/** Of a cortex answer: they speak of bytes that the envelope replaces. */
const REPLACED_BY_ENVELOPE = new Set([
  'content-type',
  'content-length',
  'content-encoding',
  'content-md5',
  'content-digest',
  'content-range',
  'accept-ranges',
  'etag',
  'last-modified',
]);

/** All values of a header, in order. */
export function headerValues(headers: RawHeaders, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.length === name.length && headers[i]!.toLowerCase() === name)
      values.push(headers[i + 1]!);
  }
  return values;
}

export function headerValue(headers: RawHeaders, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.length === name.length && headers[i]!.toLowerCase() === name) return headers[i + 1]!;
  }
  return undefined;
}

/** A header that is a list: its values in one, however many lines they came in. */
export function headerList(headers: RawHeaders, name: string): string | undefined {
  const values = headerValues(headers, name);
  return values.length < 2 ? values[0] : values.join(', ');
}

/** Names that `Connection` declares hop-by-hop; undefined where there are none but the usual. */
function connectionNames(headers: RawHeaders): Set<string> | undefined {
  let names: Set<string> | undefined;
  for (const value of headerValues(headers, 'connection')) {
    for (const part of value.split(',')) {
      const name = part.trim().toLowerCase();
      if (name === '' || name === 'close' || name === 'keep-alive' || HOP_BY_HOP.has(name)) continue;
      names ??= new Set();
      names.add(name);
    }
  }
  return names;
}

export interface ForwardedCall {
  readonly runId: string;
  /** The caller's address. */
  readonly remoteAddress: string;
  /** `Host` of the app. */
  readonly host: string;
  readonly forwardAuthorization: boolean;
  /** A cortex call: a body of JSON parameters, checked on its way, and an answer that is to be wrapped. */
  readonly parameters: boolean;
  /** Where the call is traced. */
  readonly trace?: TraceContext | undefined;
}

/** What the app gets of the caller's headers. */
export function requestHeaders(headers: RawHeaders, call: ForwardedCall): string[] {
  const named = connectionNames(headers);
  const out: string[] = ['Host', call.host];
  let forwardedFor = '';
  let host = '';
  let forwardedHost = '';
  let forwardedProto = '';
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    const value = headers[i + 1]!;
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || named?.has(lower)) continue;
    if (NOT_FOR_APPS.has(lower)) {
      if (lower === 'x-forwarded-for') forwardedFor += `${value}, `;
      else if (lower === 'x-forwarded-host') forwardedHost ||= value;
      else if (lower === 'x-forwarded-proto') forwardedProto ||= value;
      else if (lower === 'host') host = value;
      continue;
    }
    if (lower === 'authorization' && !call.forwardAuthorization) continue;
    if (call.parameters && NOT_FOR_FUNCTIONS.has(lower)) continue;
    if (call.trace !== undefined && OF_THE_TRACE.has(lower)) continue;
    out.push(name, value);
  }
  if (call.parameters) out.push('Content-Type', 'application/json', 'Accept-Encoding', 'identity');
  out.push('X-Request-Id', call.runId);
  out.push('X-Forwarded-For', forwardedFor + call.remoteAddress);
  if (forwardedHost !== '' || host !== '') out.push('X-Forwarded-Host', forwardedHost || host);
  out.push('X-Forwarded-Proto', forwardedProto || 'http');
  if (call.trace !== undefined) pushTrace(out, call.trace);
  return out;
}

/** Headers that were made ready before, with another trace in place of theirs. */
export function withTrace(headers: RawHeaders, trace: TraceContext): string[] {
  const out: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (!OF_THE_TRACE.has(headers[i]!.toLowerCase())) out.push(headers[i]!, headers[i + 1]!);
  }
  pushTrace(out, trace);
  return out;
}

function pushTrace(out: string[], { traceparent, tracestate }: TraceContext): void {
  out.push('traceparent', traceparent);
  if (tracestate !== undefined) out.push('tracestate', tracestate);
}

/** What the caller gets of a custom app's headers; `Trailer` only where trailers can follow. */
export function answerHeaders(headers: RawHeaders, runId: string, trailers: boolean): string[] {
  const out = endToEnd(headers, trailers);
  out.push('X-Request-Id', runId);
  return out;
}

/** The same of an interim answer, which tells of no run. */
export function interimHeaders(headers: RawHeaders): string[] {
  return endToEnd(headers, false);
}

function endToEnd(headers: RawHeaders, trailers: boolean): string[] {
  const named = connectionNames(headers);
  const out: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const lower = headers[i]!.toLowerCase();
    if (HOP_BY_HOP.has(lower) || lower === 'x-request-id' || named?.has(lower)) continue;
    if (lower === 'trailer' && !trailers) continue;
    out.push(headers[i]!, headers[i + 1]!);
  }
  return out;
}

/** What the caller gets of a cortex app's headers. */
export function envelopeHeaders(headers: RawHeaders, runId: string): string[] {
  const passed = answerHeaders(headers, runId, false);
  const out: string[] = ['Content-Type', 'application/json'];
  for (let i = 0; i < passed.length; i += 2) {
    if (!REPLACED_BY_ENVELOPE.has(passed[i]!.toLowerCase())) out.push(passed[i]!, passed[i + 1]!);
  }
  return out;
}

/** RFC 9112, section 6.3: these end with their head, whatever their headers say. */
export function hasNoBody(method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

/** Trailers that may pass: none that frame the message or belong to the connection (RFC 9110, section 6.5.1). */
export function answerTrailers(trailers: RawHeaders): Array<[string, string]> {
  const out: Array<[string, string]> = [];
  for (let i = 0; i < trailers.length; i += 2) {
    const lower = trailers[i]!.toLowerCase();
    if (HOP_BY_HOP.has(lower) || lower === 'content-length' || lower === 'x-request-id') continue;
    out.push([trailers[i]!, trailers[i + 1]!]);
  }
  return out;
}

/** undici hands over raw headers as buffers. */
export function decodeHeaders(raw: unknown): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map(part => (typeof part === 'string' ? part : (part as Buffer).toString('latin1')));
}

/**
 * undici reads the reason phrase as UTF-8: back to a character for each byte. One that holds what Node would
 * refuse to write is left out.
 */
export function decodeReason(reason: string | undefined): string | undefined {
  // Nearly always ASCII, which reads the same either way.
  if (reason !== undefined && /^[\t\x20-\x7e]+$/.test(reason)) return reason;
  const bytes = Buffer.from(reason ?? '').toString('latin1');
  return /^[\t\x20-\x7e\x80-\xff]+$/.test(bytes) ? bytes : undefined;
}
