/**
 * What a receiver imports (`afterword/verify`): proves that a delivery came from the service and was not
 * altered. WebCrypto alone and no imports, so it runs in Node, Deno, Bun, browsers and edge workers.
 */

/** Why a delivery was not accepted. */
export const VERIFICATION_FAILURES = {
  missing_header: 'a header that every signed delivery carries is missing',
  bad_timestamp: 'the timestamp header is not a Unix timestamp in seconds',
  bad_signature: 'the signature header does not hold a SHA-256 digest in hexadecimal',
  no_match: 'the signature does not match: another secret, or other bytes than were sent',
  timestamp_out_of_tolerance: 'the signature matches, but the delivery was not sent recently enough',
} as const;

export type VerificationFailure = keyof typeof VERIFICATION_FAILURES;

/** The delivery must not be trusted. Mistakes in the call itself are TypeErrors instead. */
export class VerificationError extends Error {
  override readonly name = 'VerificationError';
  readonly reason: VerificationFailure;

  constructor(reason: VerificationFailure, detail?: string) {
    super(VERIFICATION_FAILURES[reason] + (detail === undefined ? '' : ` (${detail})`));
    this.reason = reason;
  }
}

/** A `Headers` object, Node's `request.headers`, or any record; names in any case. */
export type DeliveryHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined };

export interface VerifyOptions {
  readonly headers: DeliveryHeaders;
  /** The body exactly as it came, never parsed and written again. */
  readonly body: Uint8Array | ArrayBuffer | string;
  /** What the caller sent as `X-Webhook-Secret`. Several, while one is being replaced: any may match. */
  readonly secret: string | Uint8Array | readonly (string | Uint8Array)[];
  /** How many seconds the timestamp may lie in the past or the future. Not checked where absent. */
  readonly tolerance?: number;
  /** The time to measure the tolerance against, in place of the present. */
  readonly now?: Date;
}

export interface VerifiedDelivery {
  /** The same at every attempt: what to remember in order to notice a duplicate. */
  readonly requestId: string;
  /** When this attempt was sent. */
  readonly timestamp: Date;
  /** 1 for the first attempt. Not covered by the signature. */
  readonly attempt?: number;
  /** Parses the body that was verified. */
  json<Result = unknown>(): DeliveryBody<Result>;
}

/** The JSON object that every delivery carries. */
export interface DeliveryBody<Result = unknown> {
  readonly run_id: string;
  readonly project_id: string;
  readonly app: string;
  /** The HTTP status that the caller got. */
  readonly status_code: number;
  readonly run_time_ms: number;
  /** The function's answer; absent where there is an `error`, or where it was omitted for its size. */
  readonly result?: Result;
  /** Present where `result` is a string of encoded bytes. */
  readonly result_encoding?: 'base64';
  /** The type of the app's answer, where it was not JSON. */
  readonly content_type?: string;
  /** Where `result` is still encoded, since that could not be undone. */
  readonly content_encoding?: string;
  readonly error?: { readonly type: string; readonly message: string };
  readonly result_omitted?: { readonly bytes: number; readonly limit: number };
  /** ISO 8601, UTC: when the answer was complete. */
  readonly timestamp: string;
}

const HMAC = { name: 'HMAC', hash: 'SHA-256' } as const;

/** Resolves where the signature matches, and rejects with a VerificationError where it does not. */
export async function verifyDelivery(options: VerifyOptions): Promise<VerifiedDelivery> {
  const body = bytesOf(options.body, 'body');
  const secrets = secretsOf(options.secret);
  const requestId = requireHeader(options.headers, 'X-Request-Id');
  const timestamp = requireHeader(options.headers, 'X-Service-Webhook-Timestamp');
  const signature = digestOf(requireHeader(options.headers, 'X-Service-Webhook-Signature'));
  if (!/^\d{1,11}$/.test(timestamp)) throw new VerificationError('bad_timestamp');

  const content = concat(new TextEncoder().encode(`${requestId}.${timestamp}.`), body);
  // Every secret is tried, so that the time taken does not tell which one matched.
  const matches = await Promise.all(secrets.map(secret => matchesSecret(secret, signature, content)));
  if (!matches.includes(true)) throw new VerificationError('no_match');

  const sentAt = new Date(Number(timestamp) * 1000);
  checkAge(sentAt, options);
  const attempt = header(options.headers, 'X-Service-Webhook-Attempt');
  return {
    requestId,
    timestamp: sentAt,
    ...(attempt !== undefined && /^\d{1,9}$/.test(attempt) && { attempt: Number(attempt) }),
    json: <Result>() => JSON.parse(new TextDecoder().decode(body)) as DeliveryBody<Result>,
  };
}

/** `subtle.verify` compares in constant time. */
async function matchesSecret(secret: Bytes, signature: Bytes, content: Bytes): Promise<boolean> {
  const key = await crypto.subtle.importKey('raw', secret, HMAC, false, ['verify']);
  return crypto.subtle.verify(HMAC, key, signature, content);
}

/** The part after the comma, or the whole value where there is none, read as hexadecimal. */
function digestOf(header: string): Bytes {
  const hex = header.slice(header.indexOf(',') + 1);
  if (!/^[0-9a-f]{64}$/i.test(hex)) throw new VerificationError('bad_signature');
  return Uint8Array.from({ length: 32 }, (_, index) =>
    Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16),
  );
}

function checkAge(sentAt: Date, { tolerance, now = new Date() }: VerifyOptions): void {
  if (tolerance === undefined) return;
  if (!(tolerance >= 0)) throw new TypeError('tolerance must be a number of seconds, 0 or more');
  const age = (now.getTime() - sentAt.getTime()) / 1000;
  if (!(Math.abs(age) <= tolerance)) {
    const seconds = Math.round(Math.abs(age));
    const detail = age > 0 ? `sent ${seconds} s ago` : `dated ${seconds} s in the future`;
    throw new VerificationError('timestamp_out_of_tolerance', detail);
  }
}

function requireHeader(headers: DeliveryHeaders, name: string): string {
  const value = header(headers, name);
  if (!value) throw new VerificationError('missing_header', name);
  return value;
}

/** A header that came several times is joined, as `Headers` does, and so matches nothing. */
function header(headers: DeliveryHeaders, name: string): string | undefined {
  if (isHeadersObject(headers)) return headers.get(name) ?? undefined;
  const values = Object.entries(headers)
    .filter(([key, value]) => value !== undefined && key.toLowerCase() === name.toLowerCase())
    .flatMap(([, value]) => value as string | readonly string[]);
  return values.length === 0 ? undefined : values.join(', ');
}

function isHeadersObject(headers: DeliveryHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}

type Bytes = Uint8Array<ArrayBuffer>;

function secretsOf(secret: VerifyOptions['secret']): Bytes[] {
  const list = Array.isArray(secret) ? secret : [secret];
  const secrets = list.map(each => bytesOf(each, 'secret'));
  // An empty secret is an unset variable: anyone could sign with it.
  if (secrets.length === 0 || secrets.some(each => each.length === 0)) {
    throw new TypeError('secret must not be empty');
  }
  return secrets;
}

function bytesOf(value: Uint8Array | ArrayBuffer | string, what: string): Bytes {
  if (typeof value === 'string') return new TextEncoder().encode(value);
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength);
  }
  // Not instanceof: test runners give each file its own ArrayBuffer.
  if (Object.prototype.toString.call(value) === '[object ArrayBuffer]') return new Uint8Array(value);
  throw new TypeError(`${what} must be the raw bytes or text, not ${value === null ? 'null' : typeof value}`);
}

function concat(head: Bytes, tail: Bytes): Bytes {
  const whole = new Uint8Array(head.length + tail.length);
  whole.set(head);
  whole.set(tail, head.length);
  return whole;
}
