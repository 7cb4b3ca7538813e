/**
 * The session as a resource of the admin listener, for the dashboard: whether one is needed and there, beginning
 * one with the admin token, ending it. Whoever guesses tokens is made to wait.
 */
import type { IncomingMessage } from 'node:http';
import { z } from '@hono/zod-openapi';
import type { Clock } from '../clock.ts';
import { Problem } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Access, isOwnOrigin, isSame } from './access.ts';
import { readJson } from './json-body.ts';
import { sessionCookie, type Sessions } from './session.ts';

export interface LoginOptions {
  readonly adminToken: string | undefined;
  readonly sessions: Sessions | undefined;
  readonly access: Pick<Access, 'checkSite'>;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface LoginAnswer {
  readonly status: 200 | 204;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Rejects with a Problem where the request is refused. */
export type Login = (req: IncomingMessage, runId: string) => Promise<LoginAnswer>;

export const SESSION_PATH = '/session';

const METHODS = ['GET', 'HEAD', 'POST', 'DELETE'] as const;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;
const Credentials = z.strictObject({ token: z.string() });

export function createLogin(options: LoginOptions): Login {
  const { adminToken, sessions, access, version, clock, log } = options;
  const failures = createFailures(clock);

  function tell({ headers: { cookie } }: IncomingMessage): LoginAnswer {
    const body = {
      login_required: adminToken !== undefined,
      logged_in: sessions?.isIn(cookie) ?? true,
      version,
      now: new Date(clock.now()).toISOString(),
    };
    return { status: 200, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  }

  async function begin(req: IncomingMessage, runId: string): Promise<LoginAnswer> {
    if (!JSON_TYPE.test(req.headers['content-type'] ?? '')) {
      throw new Problem('invalid_body', 'The body must come as application/json');
    }
    // The connection is kept, for the answer to a body that is too long.
    const body = req.iterator({ destroyOnReturn: false });
    const { token } = await readJson({ body }, Credentials);
    if (adminToken === undefined || sessions === undefined) return { status: 204, headers: {} };
    const seconds = failures.wait();
    if (seconds > 0) throw new Problem('too_many_logins', undefined, ['Retry-After', `${seconds}`]);
    if (!isSame(token, adminToken)) {
      failures.add();
      log.warn({ run_id: runId, from: req.socket.remoteAddress }, 'a login failed');
      throw new Problem('unauthorized', 'This is not the admin token');
    }
    return withCookie(req, sessions.begin());
  }

  return async (req, runId) => {
    access.checkSite(req);
    const method = METHODS.find(known => known === req.method);
    if (method === undefined)
      throw new Problem('method_not_allowed', undefined, ['Allow', METHODS.join(', ')]);
    if (method === 'GET' || method === 'HEAD') return tell(req);
    const { origin, host } = req.headers;
    if (!isOwnOrigin(origin, host)) throw new Problem('foreign_origin', 'The Origin of the page is required');
    return method === 'POST' ? begin(req, runId) : withCookie(req, '');
  };
}

function withCookie({ headers: { origin = '', ...headers } }: IncomingMessage, value: string): LoginAnswer {
  const secure = origin.startsWith('https:') || headers['x-forwarded-proto'] === 'https';
  return { status: 204, headers: { 'Set-Cookie': sessionCookie(value, { secure }) } };
}

const MAX_FAILURES = 10;
const WINDOW_MS = 60_000;

/** Counted together, wherever they come from: an address is easily changed, and behind a proxy all have one. */
function createFailures(clock: Pick<Clock, 'elapsed'>) {
  let count = 0;
  let endsAt = 0;
  return {
    add(): void {
      if (clock.elapsed() >= endsAt) {
        count = 0;
        endsAt = clock.elapsed() + WINDOW_MS;
      }
      count += 1;
    },
    /** Seconds until the next one may try, a right token or not. */
    wait(): number {
      const left = endsAt - clock.elapsed();
      return count < MAX_FAILURES || left <= 0 ? 0 : Math.ceil(left / 1000);
    },
  };
}
