/**
 * The session of a browser whose user has given the admin token once: a cookie that says until when it holds,
 * with a code that only who has the token can make. Nothing of it is kept, so every node with the same token
 * takes it, and another token ends all sessions.
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../clock.ts';

export interface SessionsOptions {
  readonly adminToken: string;
  readonly clock: Pick<Clock, 'now'>;
}

export interface Sessions {
  /** The value of a cookie, for one that begins now. */
  begin(): string;
  /** Whether a `Cookie` header has a session that still holds. */
  isIn(cookies: string | undefined): boolean;
}

export const SESSION_SECONDS = 12 * 3600;

const NAME = 'afterword_session';
const VALUE = /^\d{1,12}\.[\w-]{43}$/;

export function createSessions({ adminToken, clock }: SessionsOptions): Sessions {
  // A key of its own: what the cookie shows of it says nothing of what else the token may be used for.
  const key = Buffer.from(hkdfSync('sha256', adminToken, '', NAME, 32));
  const now = (): number => Math.floor(clock.now() / 1000);
  const valueOf = (end: number): string =>
    `${end}.${createHmac('sha256', key).update(`${end}`).digest('base64url')}`;

  function holds(value: string): boolean {
    if (!VALUE.test(value)) return false;
    const end = Number.parseInt(value, 10);
    const [given, right] = [Buffer.from(value), Buffer.from(valueOf(end))];
    return given.length === right.length && timingSafeEqual(given, right) && now() < end;
  }

  return {
    begin: () => valueOf(now() + SESSION_SECONDS),
    isIn: cookies => cookiesNamed(NAME, cookies).some(holds),
  };
}

/** A `Set-Cookie`: out of reach of scripts, and not sent along by a page of another site. */
export function sessionCookie(value: string, { secure }: { readonly secure: boolean }): string {
  const life = value === '' ? 0 : SESSION_SECONDS;
  const cookie = `${NAME}=${value}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${life}`;
  return secure ? `${cookie}; Secure` : cookie;
}

/** All of the name, for there can be several: a neighbour under the same domain may set one too. */
function cookiesNamed(name: string, cookies = ''): string[] {
  return cookies
    .split(';')
    .map(cookie => cookie.trim())
    .filter(cookie => cookie.startsWith(`${name}=`))
    .map(cookie => cookie.slice(name.length + 1));
}
