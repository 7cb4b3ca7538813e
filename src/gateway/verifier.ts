/**
 * Verifies a token with the keys of one project, at a given time, and says what came of it.
 */
import { errors, type JWTPayload, type JWTVerifyOptions, type JWTVerifyResult, jwtVerify } from 'jose';
import type { Clock } from '../clock.ts';
import type { ProjectConfig } from '../config/config.ts';
import type { Logger } from '../log.ts';
import { createRemoteKeys, type KeySet, type RemoteKeys } from './jwks.ts';
import { type Algorithm, configuredKey } from './keys.ts';

export const CLOCK_SKEW_SECONDS = 5;

/** Why a token is refused. All but `invalid` are only told of a token whose signature is right. */
export const REFUSALS = {
  invalid: 'The token is not valid for this project',
  expired: 'The token has expired',
  not_yet_valid: 'The token is not valid yet',
  issuer: 'The token comes from another issuer than the project expects',
  audience: 'The token is meant for another audience than the project expects',
  claims: 'The token lacks a usable claim that the project expects',
} as const;

export type Refusal = keyof typeof REFUSALS;

export type Verification =
  | { readonly kind: 'valid'; readonly claims: JWTPayload }
  | { readonly kind: 'invalid'; readonly refusal: Refusal }
  | { readonly kind: 'unavailable' };

export interface TokenVerifier {
  /** How long a token found valid may be taken for valid without asking the keys again. */
  readonly trustMs: number;
  verify(token: string): Promise<Verification>;
}

const TRUST_MS = 5 * 60_000;
/** Short, so that a key withdrawn from a JWKS soon stops counting. */
const ROTATING_TRUST_MS = 60_000;

const INVALID: Verification = { kind: 'invalid', refusal: 'invalid' };
const UNAVAILABLE: Verification = { kind: 'unavailable' };

export interface TokenVerifierOptions {
  readonly project: Pick<ProjectConfig, 'id' | 'jwt'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Throws a UsageError where the configured key cannot serve. */
export function createTokenVerifier({ project, clock, log }: TokenVerifierOptions): TokenVerifier {
  const { jwt } = project;
  const optionsNow = (algorithms: Algorithm[]): JWTVerifyOptions => ({
    algorithms,
    clockTolerance: CLOCK_SKEW_SECONDS,
    currentDate: new Date(clock.now()),
    ...(jwt.issuer === undefined ? {} : { issuer: jwt.issuer }),
    ...(jwt.audience === undefined ? {} : { audience: jwt.audience }),
  });
  if (jwt.jwksUrl !== undefined) {
    const keys = createRemoteKeys({ url: jwt.jwksUrl, clock, log });
    // A key in a set fits one of these at most, by its type and curve.
    const algorithms: Algorithm[] = ['RS256', 'ES256', 'EdDSA'];
    return {
      trustMs: ROTATING_TRUST_MS,
      verify: token => verifyRemote(token, keys, optionsNow(algorithms)),
    };
  }
  const { key, algorithm } = configuredKey(project);
  return {
    trustMs: TRUST_MS,
    verify: token => settle(jwtVerify(token, key, optionsNow([algorithm]))),
  };
}

async function verifyRemote(
  token: string,
  keys: RemoteKeys,
  options: JWTVerifyOptions,
): Promise<Verification> {
  const set = await keys.current();
  if (set === undefined) return UNAVAILABLE;
  try {
    const { payload } = await verifyWithSet(token, set, options);
    return { kind: 'valid', claims: payload };
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey)) return refused(error);
  }
  // An unknown key: the issuer may have begun to use it since the set was fetched.
  const newer = await keys.refresh();
  if (newer === undefined) return UNAVAILABLE;
  return newer === set ? INVALID : await settle(verifyWithSet(token, newer, options));
}

async function verifyWithSet(
  token: string,
  set: KeySet,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, set, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    // A token without `kid` among several keys of its kind: one of them has to fit.
    for await (const key of error) {
      try {
        return await jwtVerify(token, key, options);
      } catch (mismatch) {
        if (!(mismatch instanceof errors.JWSSignatureVerificationFailed)) throw mismatch;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

async function settle(verifying: Promise<JWTVerifyResult>): Promise<Verification> {
  try {
    return { kind: 'valid', claims: (await verifying).payload };
  } catch (error) {
    return refused(error);
  }
}

/** Whatever jose threw: also a key of a set that turns out unusable verifies nothing. */
function refused(error: unknown): Verification {
  if (error instanceof errors.JWTExpired) return { kind: 'invalid', refusal: 'expired' };
  if (!(error instanceof errors.JWTClaimValidationFailed)) return INVALID;
  const { claim, reason } = error;
  if (reason !== 'check_failed') return { kind: 'invalid', refusal: 'claims' };
  if (claim === 'nbf') return { kind: 'invalid', refusal: 'not_yet_valid' };
  return { kind: 'invalid', refusal: claim === 'iss' ? 'issuer' : 'audience' };
}
