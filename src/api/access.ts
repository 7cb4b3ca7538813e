/**
 * Who asks on the admin listener, and what they may see: holders of the admin token, or of a session that began
 * with it, all projects, holders of a project's token that one. Where there is no admin token, the listener is
 * on loopback, and whoever is on the machine may see all; but not a web page that a browser on the machine
 * happens to show.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { decodeJwt } from 'jose';
import { Problem } from '../errors.ts';
import type { Sessions } from './session.ts';

export interface AccessOptions {
  readonly adminToken: string | undefined;
  /** Those of the admin token. */
  readonly sessions: Pick<Sessions, 'isIn'> | undefined;
  /** Whether a token is a good one of the project. Throws or rejects with a Problem where it is not. */
  readonly authenticator: {
    check(projectId: string, authorization: string | undefined): Promise<void> | void;
  };
}

export type Asked = Pick<IncomingMessage, 'method' | 'headers'>;

export interface Access {
  /** Throws a Problem where it is a page of another site that asks. */
  checkSite(asked: Asked): void;
  /** Whether all may be seen. */
  isAdmin(asked: Asked): boolean;
  /** The only project that may be seen, or undefined: all. Rejects with a Problem where nothing may. */
  projectOf(asked: Asked): Promise<string | undefined>;
}

const CHALLENGE = 'Bearer realm="afterword admin"';

export function createAccess({ adminToken, sessions, authenticator }: AccessOptions): Access {
  function checkSite({ headers: { origin, host } }: Asked): void {
    if (origin !== undefined && !isOwnOrigin(origin, host)) throw new Problem('foreign_origin');
    if (adminToken === undefined && !isOwnName(host)) {
      throw new Problem(
        'foreign_origin',
        'Without an admin token, only the address of the listener is answered',
      );
    }
  }

  /** A token that is given decides; a cookie, which a browser sends by itself, counts only where there is none. */
  function isAdmin({ method, headers: { authorization, cookie, origin, host } }: Asked): boolean {
    if (adminToken === undefined) return authorization === undefined;
    if (authorization !== undefined) return isSame(authorization, `Bearer ${adminToken}`);
    return (isReading(method) || isOwnOrigin(origin, host)) && (sessions?.isIn(cookie) ?? false);
  }

  return {
    checkSite,
    isAdmin,
    async projectOf(asked) {
      checkSite(asked);
      if (isAdmin(asked)) return undefined;
      const { authorization } = asked.headers;
      const projectId = claimedProject(authorization);
      if (projectId === undefined) {
        throw new Problem('unauthorized', 'An admin token, or a token of a project, is required', [
          'WWW-Authenticate',
          CHALLENGE,
        ]);
      }
      await authenticator.check(projectId, authorization);
      return projectId;
    },
  };
}

/** Digests are of one length, so the comparison tells nothing of the secret's. */
export function isSame(given: string, secret: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}

export function isReading(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** A browser says which page makes a request that changes something, or that reads across sites. */
export function isOwnOrigin(origin: string | undefined, host: string | undefined): boolean {
  return origin !== undefined && host !== undefined && URL.parse(origin)?.host === host;
}

/** A page can give its own name this machine's address, and so be of the same site (DNS rebinding). */
export function isOwnName(host: string | undefined): boolean {
  const name = URL.parse(`http://${host ?? 'localhost'}`)?.hostname ?? '';
  return name === 'localhost' || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
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
