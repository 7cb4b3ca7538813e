/**
 * The keys behind a JWKS URL. A set is fetched when first needed, again when it has grown old, and again
 * when a token names a key that it does not hold; but never more often than once in a cooldown, whether
 * the fetch succeeded or not. While the issuer is out of reach, the last set goes on serving for a time.
 */
import { createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { request } from 'undici';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';

export type KeySet = ReturnType<typeof createLocalJWKSet>;

export interface RemoteKeys {
  /** The set to verify with, or undefined where none can be had. */
  current(): Promise<KeySet | undefined>;
  /** The newest set that the cooldown permits, or undefined where the last fetch failed. */
  refresh(): Promise<KeySet | undefined>;
}

const FRESH_MS = 5 * 60_000;
const USABLE_MS = 60 * 60_000;
const COOLDOWN_MS = 10_000;
const FETCH_TIMEOUT_MS = 5_000;
const MAX_BYTES = 1 << 20;

export interface RemoteKeysOptions {
  readonly url: URL;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createRemoteKeys({ url, clock, log }: RemoteKeysOptions): RemoteKeys {
  let held: { readonly set: KeySet; readonly since: number } | undefined;
  let last: { readonly at: number; readonly result: Promise<KeySet | undefined> } | undefined;

  async function load(): Promise<KeySet | undefined> {
    try {
      const set = createLocalJWKSet(await fetchKeys(url, clock));
      held = { set, since: clock.elapsed() };
      return set;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.warn({ event: 'keys_unavailable', url: url.origin + url.pathname, reason }, 'JWKS fetch failed');
      return undefined;
    }
  }

  function refresh(): Promise<KeySet | undefined> {
    const now = clock.elapsed();
    if (last === undefined || now - last.at >= COOLDOWN_MS) last = { at: now, result: load() };
    return last.result;
  }

  async function current(): Promise<KeySet | undefined> {
    if (held !== undefined && clock.elapsed() - held.since < FRESH_MS) return held.set;
    const fetched = await refresh();
    if (fetched !== undefined) return fetched;
    return held !== undefined && clock.elapsed() - held.since < USABLE_MS ? held.set : undefined;
  }

  return { current, refresh };
}

async function fetchKeys(url: URL, clock: Clock): Promise<JSONWebKeySet> {
  const abort = new AbortController();
  const cancel = clock.after(FETCH_TIMEOUT_MS, () => abort.abort(new Error('timed out')));
  try {
    // Redirects are not followed; the connection is not kept for a fetch every few minutes.
    const { statusCode, body } = await request(url, {
      signal: abort.signal,
      reset: true,
      headers: { accept: 'application/json, application/jwk-set+json' },
    });
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > MAX_BYTES) throw new Error(`answered with more than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
    if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as JSONWebKeySet;
  } finally {
    cancel();
  }
}
