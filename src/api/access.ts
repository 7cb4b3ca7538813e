/**
 * Who asks on the admin listener, and what they may see: holders of the admin token all projects, holders of a
 * project's token that one. Where there is no admin token, the listener is on loopback, and whoever is on the
 * machine may see all; but not a web page that a browser on the machine happens to show.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { decodeJwt } from 'jose';
import { Problem } from '../errors.ts';

export interface AccessOptions {
  readonly adminToken: string | undefined;
  /** Whether a token is a good one of the project. Throws or rejects with a Problem where it is not. */
  readonly authenticator: {
    check(projectId: string, authorization: string | undefined): Promise<void> | void;
  };
}

/** Tells the only project that may be seen, or undefined: all. Rejects with a Problem where nothing may. */
export type Access = (headers: IncomingHttpHeaders) => Promise<string | undefined>;

const CHALLENGE = 'Bearer realm="afterword admin"';

export function createAccess({ adminToken, authenticator }: AccessOptions): Access {
  return async ({ authorization, origin, host }) => {
    checkOrigin(origin, host);
    if (adminToken === undefined) checkName(host);
    if (adminToken === undefined ? authorization === undefined : isAdminToken(authorization, adminToken)) {
      return undefined;
    }
    const projectId = claimedProject(authorization);
    if (projectId === undefined) {
      throw new Problem('unauthorized', 'An admin token, or a token of a project, is required', [
        'WWW-Authenticate',
        CHALLENGE,
      ]);
    }
    await authenticator.check(projectId, authorization);
    return projectId;
  };
}

/** Digests are of one length, so the comparison tells nothing of the token's. */
export function isAdminToken(authorization: string | undefined, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`));
}

/** The project that a token says it is of; whether that is true is for the project's keys to say. */
function claimedProject(authorization: string | undefined): string | undefined {
  try {
    const claimed = decodeJwt(authorization?.replace(/^bearer +/i, '') ?? '')['project_id'];
    return typeof claimed === 'string' ? claimed : undefined;
  } catch {
    return undefined;
  }
}

/** A browser says which page makes a request that changes something, or that reads across sites. */
function checkOrigin(origin: string | undefined, host: string | undefined): void {
  if (origin !== undefined && URL.parse(origin)?.host !== host) throw new Problem('foreign_origin');
}

/** A page can give its own name this machine's address, and so be of the same site (DNS rebinding). */
function checkName(host: string | undefined): void {
  const name = URL.parse(`http://${host ?? 'localhost'}`)?.hostname ?? '';
  if (name === 'localhost' || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return;
  throw new Problem('foreign_origin', 'Without an admin token, only the address of the listener is answered');
}
