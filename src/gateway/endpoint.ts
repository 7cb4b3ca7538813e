/**
 * Reads what a call asks of webhook forwarding: the query parameter `webhookEndpoint`, which is cut out of
 * the query that the app sees, and the header `X-Webhook-Secret`. Neither value is ever repeated in an
 * error: both may carry credentials.
 */
import type { ProjectConfig } from '../config/config.ts';
import type { TargetPolicy } from '../delivery/target.ts';
import { Problem } from '../errors.ts';
import type { Confidential } from '../store/store.ts';

export interface WebhookReading {
  /** The query and the raw headers of the call, as they came. */
  readonly query: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly project: Pick<ProjectConfig, 'requireSecret'>;
  readonly policy: Pick<TargetPolicy, 'judgeUrl'>;
}

export interface RequestedWebhook {
  /** Absolute URL, without user information and fragment. */
  readonly target: string;
  readonly confidential: Confidential;
}

export interface WebhookRead {
  /** What the app sees; undefined where no query is left, and so no `?`. */
  readonly query: string | undefined;
  readonly webhook?: RequestedWebhook;
}

const PARAMETER = 'webhookEndpoint';
const SECRET_HEADER = 'x-webhook-secret';
const MAX_ENDPOINT = 2048;
const MAX_SECRET = 1024;

const PERCENT = 0x25;
const AMPERSAND = 0x26;
const EQUALS = 0x3d;

export function readWebhook({ query, rawHeaders, project, policy }: WebhookReading): WebhookRead {
  // Checked on every call: a caller who errs in the secret learns it before the endpoint is added.
  const secret = readSecret(rawHeaders);
  const pair = query === undefined ? undefined : findParameter(query);
  if (query === undefined || pair === undefined) return { query };

  const url = parseEndpoint(query.slice(pair.valueStart, pair.end));
  const authorization = takeUserInfo(url);
  const verdict = policy.judgeUrl(url);
  if (!verdict.allowed) {
    throw new Problem('forbidden_target', `webhookEndpoint names a forbidden address (${verdict.reason})`);
  }
  if (secret === undefined && project.requireSecret) throw new Problem('secret_required');
  return {
    query: cut(query, pair),
    webhook: {
      target: url.href,
      confidential: {
        ...(secret === undefined ? {} : { secret: keyBytes(secret) }),
        ...(authorization === undefined ? {} : { authorization }),
      },
    },
  };
}

function readSecret(rawHeaders: readonly string[]): string | undefined {
  let secret: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length !== SECRET_HEADER.length || name.toLowerCase() !== SECRET_HEADER) continue;
    if (secret !== undefined) throw invalidSecret('is given more than once');
    secret = rawHeaders[at + 1]!;
  }
  if (secret === undefined) return undefined;
  if (secret.length === 0) throw invalidSecret('is empty');
  if (secret.length > MAX_SECRET) throw invalidSecret(`is longer than ${MAX_SECRET} bytes`);
  return secret;
}

/** Node reads header values as latin1, one character a byte. Copied out of Buffer's shared pool. */
function keyBytes(secret: string): Uint8Array {
  return new Uint8Array(Buffer.from(secret, 'latin1'));
}

/** Where a parameter lies in the query: `name=value` from `start` to `end`, without its separators. */
interface Pair {
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
}

/** An escaped spelling of the name is the same parameter, so that no second one slips through to the app. */
function findParameter(query: string): Pair | undefined {
  if (!query.includes(PARAMETER) && !query.includes('%')) return undefined;
  let found: Pair | undefined;
  let start = 0;
  let equals = -1;
  let escaped = false;
  for (let at = 0; at <= query.length; at++) {
    const code = at === query.length ? AMPERSAND : query.charCodeAt(at);
    if (code === AMPERSAND) {
      const nameEnd = equals === -1 ? at : equals;
      if (namesParameter(query, start, nameEnd, escaped)) {
        if (found !== undefined) throw invalidEndpoint('is given more than once');
        found = { start, valueStart: nameEnd + 1, end: at };
      }
      start = at + 1;
      equals = -1;
      escaped = false;
    } else if (equals === -1) {
      if (code === EQUALS) equals = at;
      else if (code === PERCENT) escaped = true;
    }
  }
  return found;
}

function namesParameter(query: string, start: number, end: number, escaped: boolean): boolean {
  const length = end - start;
  if (!escaped) return length === PARAMETER.length && query.startsWith(PARAMETER, start);
  if (length < PARAMETER.length || length > PARAMETER.length * 3) return false;
  return percentDecode(query.slice(start, end)) === PARAMETER;
}

/** The other parameters and the separators between them stay: as if split at `&`, and joined without it. */
function cut(query: string, { start, end }: Pair): string | undefined {
  if (start > 0) return query.slice(0, start - 1) + query.slice(end);
  return end < query.length ? query.slice(end + 1) : undefined;
}

function parseEndpoint(raw: string): URL {
  if (raw === '') throw invalidEndpoint('is empty');
  const value = percentDecode(raw);
  if (value === undefined) throw invalidEndpoint('is not percent-encoded UTF-8');
  if (value.length > MAX_ENDPOINT) throw invalidEndpoint(`is longer than ${MAX_ENDPOINT} characters`);
  // Covers the raw value too: decoding leaves what was not escaped as it is.
  if (/[\s\p{Cc}]/u.test(value)) throw invalidEndpoint('holds white space or control characters');
  // Asked of the string, since the URL parser also takes `http:host` and `http:///host`.
  if (!/^https?:\/\/[^/?#\\]/i.test(value)) throw invalidEndpoint('is not an absolute http or https URL');
  const url = URL.parse(value);
  if (url === null) throw invalidEndpoint('is not a valid URL');
  url.hash = '';
  return url;
}

/** Moves `user:password@` out of the URL into the value of a Basic header (RFC 7617). */
function takeUserInfo(url: URL): string | undefined {
  if (url.username === '' && url.password === '') return undefined;
  const user = percentDecode(url.username);
  const password = percentDecode(url.password);
  if (user === undefined || password === undefined) {
    throw invalidEndpoint('holds a user name or password that is not percent-encoded UTF-8');
  }
  // RFC 7617, 2: a colon ends the user name, and neither part holds control characters.
  if (user.includes(':') || /\p{Cc}/u.test(user + password)) {
    throw invalidEndpoint('holds a user name or password that a Basic header cannot carry');
  }
  url.username = '';
  url.password = '';
  return `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`;
}

/** Percent-decoding alone (`+` stays) of an ASCII string, to strict UTF-8; undefined where it is malformed. */
function percentDecode(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

function invalidEndpoint(what: string): Problem {
  return new Problem('invalid_webhook_endpoint', `webhookEndpoint ${what}`);
}

function invalidSecret(what: string): Problem {
  return new Problem('invalid_webhook_secret', `X-Webhook-Secret ${what}`);
}
