/**
 * Reads what a call asks of webhook forwarding: the value of its query parameter `webhookEndpoint` and the
 * header `X-Webhook-Secret`. Neither value is ever repeated in an error: both may carry credentials.
 */
import type { ProjectConfig } from '../config/config.ts';
import { percentDecode } from '../delivery/percent.ts';
import type { TargetPolicy } from '../delivery/target.ts';
import { readTargetUrl, type TargetUrl } from '../delivery/target-url.ts';
import { Problem } from '../errors.ts';
import type { Confidential } from '../store/store.ts';

export interface WebhookReading {
  /** The raw value of `webhookEndpoint`, and the raw headers of the call. */
  readonly endpoint: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly project: Pick<ProjectConfig, 'requireSecret'>;
  readonly policy: Pick<TargetPolicy, 'judgeUrl'>;
}

export interface RequestedWebhook {
  /** Absolute URL, without user information and fragment. */
  readonly target: string;
  readonly confidential: Confidential;
}

const SECRET_HEADER = 'x-webhook-secret';
const MAX_SECRET = 1024;

export function readWebhook(reading: WebhookReading): RequestedWebhook | undefined {
  const { endpoint, rawHeaders, project, policy } = reading;
  // Checked on every call: a caller who errs in the secret learns it before the endpoint is added.
  const secret = readSecret(rawHeaders);
  if (endpoint === undefined) return undefined;

  const { url, authorization } = parseEndpoint(endpoint);
  const verdict = policy.judgeUrl(url);
  if (!verdict.allowed) {
    throw new Problem('forbidden_target', `webhookEndpoint names a forbidden address (${verdict.reason})`);
  }
  if (secret === undefined && project.requireSecret) throw new Problem('secret_required');
  return {
    target: url.href,
    confidential: {
      ...(secret === undefined ? {} : { secret: keyBytes(secret) }),
      ...(authorization === undefined ? {} : { authorization }),
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

function parseEndpoint(raw: string): TargetUrl {
  if (raw === '') throw invalidEndpoint('is empty');
  // What was not escaped stays as it is, so what is wrong with the raw value is found in the decoded one.
  const value = percentDecode(raw);
  if (value === undefined) throw invalidEndpoint('is not percent-encoded UTF-8');
  const target = readTargetUrl(value);
  if ('wrong' in target) throw invalidEndpoint(target.wrong);
  return target;
}

function invalidEndpoint(what: string): Problem {
  return new Problem('invalid_webhook_endpoint', `webhookEndpoint ${what}`);
}

function invalidSecret(what: string): Problem {
  return new Problem('invalid_webhook_secret', `X-Webhook-Secret ${what}`);
}
