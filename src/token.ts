/**
 * Makes a token for a project that is configured with a secret, for the commands that hand one out.
 */
import { SignJWT } from 'jose';
import type { Clock } from './clock.ts';

export interface TokenRequest {
  readonly secret: string;
  readonly projectId: string;
  readonly ttlSeconds: number;
  readonly clock: Clock;
  /** As configured for the project: where it asks for them, a token without them is refused. */
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
}

export async function issueToken(request: TokenRequest): Promise<string> {
  const { secret, projectId, ttlSeconds, clock, issuer, audience } = request;
  const issuedAt = Math.floor(clock.now() / 1000);
  const token = new SignJWT({ project_id: projectId })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ttlSeconds);
  if (issuer !== undefined) token.setIssuer(issuer);
  if (audience !== undefined) token.setAudience(audience);
  return await token.sign(Buffer.from(secret, 'utf8'));
}
