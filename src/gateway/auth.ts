/**
 * Decides whether a call may reach its project: the bearer token must be verified by the project's keys and
 * its claim `project_id` must name the project. A token seen lately is answered at once, from memory. A
 * project that does not exist is answered as a token that is not valid.
 */
import { decodeJwt, type JWTPayload } from 'jose';
import type { Clock } from '../clock.ts';
import type { ProjectConfig } from '../config/config.ts';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import { createVerifiedTokens } from './tokens.ts';
import {
  CLOCK_SKEW_SECONDS,
  createTokenVerifier,
  REFUSALS,
  type Refusal,
  type TokenVerifier,
} from './verifier.ts';

export interface AuthenticatorOptions {
  readonly projects: ReadonlyMap<string, ProjectConfig>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Authenticator {
  /** Nothing, at once or later: the call may go on. Throws or rejects with a Problem otherwise. */
  check(projectId: string, authorization: string | undefined): Promise<void> | void;
}

const CACHED_TOKENS = 10_000;
/** Of the whole header: spaces before a token take memory as well. */
const MAX_CACHED_LENGTH = 'Bearer '.length + 4096;

const CHALLENGE = 'Bearer realm="afterword"';

/** Throws a UsageError where a project's key cannot serve. */
export function createAuthenticator({ projects, clock, log }: AuthenticatorOptions): Authenticator {
  const verifiers = new Map<string, TokenVerifier>();
  for (const project of projects.values()) {
    verifiers.set(project.id, createTokenVerifier({ project, clock, log }));
  }
  // By the header's value, which spares cutting the token out of it. A valid token has one project.
  const verified = createVerifiedTokens(CACHED_TOKENS);
  const underway = new Map<string, Promise<void>>();

  async function verify(projectId: string, token: string, authorization: string): Promise<void> {
    const verifier = verifiers.get(projectId)!;
    const verification = await verifier.verify(token);
    if (verification.kind === 'unavailable') throw new Problem('keys_unavailable');
    if (verification.kind === 'invalid') {
      if (await belongsElsewhere(token, projectId, verifiers)) throw new Problem('wrong_project');
      log.debug(
        { event: 'token_refused', project: projectId, reason: verification.refusal },
        'token refused',
      );
      throw unauthorized(verification.refusal);
    }
    const { claims } = verification;
    const claimed = claims['project_id'];
    if (typeof claimed !== 'string') throw unauthorized('claims');
    if (claimed !== projectId) throw new Problem('wrong_project');
    if (authorization.length <= MAX_CACHED_LENGTH) {
      verified.add(authorization, { projectId, ...honoured(claims, clock.now(), verifier.trustMs) });
    }
  }

  async function verifyOnce(key: string, verifying: Promise<void>): Promise<void> {
    try {
      await verifying;
    } finally {
      underway.delete(key);
    }
  }

  function check(projectId: string, authorization: string | undefined): Promise<void> | void {
    if (authorization !== undefined && verified.has(authorization, projectId, clock.now())) return;
    const token = bearerToken(authorization);
    if (!verifiers.has(projectId)) throw unauthorized('invalid');
    const key = `${projectId} ${token}`;
    let checking = underway.get(key);
    if (checking === undefined) {
      checking = verifyOnce(key, verify(projectId, token, authorization!));
      underway.set(key, checking);
    }
    return checking;
  }

  return { check };
}

/** Whether a token that its path's project refuses is a good one of the project that it names. */
async function belongsElsewhere(
  token: string,
  projectId: string,
  verifiers: ReadonlyMap<string, TokenVerifier>,
): Promise<boolean> {
  let claimed: unknown;
  try {
    claimed = decodeJwt(token)['project_id'];
  } catch {
    return false;
  }
  if (typeof claimed !== 'string' || claimed === projectId) return false;
  const verification = await verifiers.get(claimed)?.verify(token);
  return verification?.kind === 'valid';
}

/** While a verified token counts without being verified again. */
function honoured({ exp, nbf }: JWTPayload, now: number, trustMs: number): { from: number; until: number } {
  // Verification reads whole seconds: rounding up gives the very moments at which its answer changes.
  const begins = nbf === undefined ? 0 : Math.ceil(nbf - CLOCK_SKEW_SECONDS) * 1000;
  const ends = exp === undefined ? Infinity : Math.ceil(exp + CLOCK_SKEW_SECONDS) * 1000;
  return {
    // Should the clock be set back, an entry must not live longer for it.
    from: Math.max(begins, now - CLOCK_SKEW_SECONDS * 1000),
    until: Math.min(ends, now + trustMs),
  };
}

/** The token of `Bearer <token>` (RFC 6750, 2.1); other schemes count as no token at all. */
function bearerToken(authorization: string | undefined): string {
  const scheme = /^bearer(?: +|$)/i.exec(authorization ?? '');
  if (scheme === null || scheme[0] === authorization) throw challenge();
  const token = authorization!.slice(scheme[0].length);
  // The alphabet of a compact JWS: no second token, no list.
  if (!/^[\w.-]+$/.test(token)) throw unauthorized('invalid');
  return token;
}

/** RFC 6750, 3.1: a call without a token is told what is wanted, and no error code. */
function challenge(): Problem {
  return new Problem('unauthorized', 'A bearer token is required', ['WWW-Authenticate', CHALLENGE]);
}

function unauthorized(refusal: Refusal): Problem {
  return new Problem('unauthorized', REFUSALS[refusal], [
    'WWW-Authenticate',
    `${CHALLENGE}, error="invalid_token"`,
  ]);
}
