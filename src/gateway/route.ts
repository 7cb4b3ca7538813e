/**
 * Reads the target of a call, `/v4/{project}/{app}/{rest}?{query}`, once and without decoding it: the
 * parts are pieces of the raw string, so what routes and authorises is what is forwarded. Spellings that
 * another reader of the same path could take differently are refused.
 */
import { Problem } from '../errors.ts';

export interface CallTarget {
  /** As written: a malformed name is simply one that nobody has. */
  readonly projectId: string;
  readonly app: string;
  /** Begins with `/`. */
  readonly rest: string;
  /** Without its `?`; undefined where there is no `?`. */
  readonly query: string | undefined;
}

const PREFIX = '/v4/';
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;

const HASH = 0x23;
const PERCENT = 0x25;
const DOT = 0x2e;
const SLASH = 0x2f;
const SEMICOLON = 0x3b;
const QUESTION = 0x3f;
const BACKSLASH = 0x5c;
const DELETE = 0x7f;

export function parseTarget(rawUrl: string): CallTarget {
  // Origin-form alone (RFC 9112, 3.2.1): `http://host/…`, `host:443` and `*` do not begin with a slash.
  if (rawUrl.charCodeAt(0) !== SLASH) throw refused('it must begin with a slash');
  if (rawUrl.charCodeAt(1) === SLASH) throw refused('it must not begin with two slashes');
  const pathEnd = checkPath(rawUrl);
  checkQuery(rawUrl, pathEnd + 1);

  if (!rawUrl.startsWith(PREFIX)) throw new Problem('not_found');
  const projectEnd = rawUrl.indexOf('/', PREFIX.length);
  if (projectEnd <= PREFIX.length || projectEnd >= pathEnd) throw new Problem('not_found');
  const slash = rawUrl.indexOf('/', projectEnd + 1);
  const appEnd = slash === -1 || slash > pathEnd ? pathEnd : slash;
  if (appEnd === projectEnd + 1) throw new Problem('not_found');
  return {
    projectId: rawUrl.slice(PREFIX.length, projectEnd),
    app: rawUrl.slice(projectEnd + 1, appEnd),
    rest: appEnd === pathEnd ? '/' : rawUrl.slice(appEnd, pathEnd),
    query: pathEnd === rawUrl.length ? undefined : rawUrl.slice(pathEnd + 1),
  };
}

/** No app has such a name: what lies there is the service's own. */
export function isOwnPath({ app }: CallTarget): boolean {
  return app.startsWith('_');
}

/** The function that a call to a cortex app names: the whole of `rest`. */
export function functionName(rest: string): string {
  const name = rest.slice(1);
  if (!NAME.test(name)) throw new Problem('not_found');
  return name;
}

/** Tells where the path ends: at the `?`, or with the string. */
function checkPath(rawUrl: string): number {
  // Dots that the segment consists of so far, or -1 once it holds anything else.
  let dots = -1;
  let at = 0;
  for (; at < rawUrl.length; at++) {
    let code = rawUrl.charCodeAt(at);
    if (code === QUESTION) break;
    if (code === SLASH) {
      refuseDots(dots);
      dots = 0;
      continue;
    }
    if (code === PERCENT) {
      code = escaped(rawUrl, at);
      at += 2;
    } else if (code <= 0x20 || code >= DELETE || code === HASH || code === BACKSLASH) {
      throw refused('its path holds a character that must be percent-encoded');
    }
    if (code === DOT) {
      if (dots >= 0) dots++;
    } else {
      // Servers that know path parameters read `..;x` as `..`.
      if (code === SEMICOLON) refuseDots(dots);
      dots = -1;
    }
  }
  refuseDots(dots);
  return at;
}

/** The byte that the escape at `at` stands for. */
function escaped(rawUrl: string, at: number): number {
  const high = hexDigit(rawUrl.charCodeAt(at + 1));
  const low = hexDigit(rawUrl.charCodeAt(at + 2));
  if (high === -1 || low === -1) throw refused('its path holds a malformed percent escape');
  const code = high * 16 + low;
  if (code === 0 || code === SLASH || code === BACKSLASH) {
    throw refused('its path holds an encoded slash, backslash or NUL');
  }
  return code;
}

/** The value of a hexadecimal digit, or -1 (also for the NaN past the end of a string). */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

function refuseDots(dots: number): void {
  if (dots === 1 || dots === 2) throw refused('its path holds a dot segment');
}

/** Escapes are the app's own matter here; what no request target may hold (RFC 9112, 3.2.1) is not. */
function checkQuery(rawUrl: string, start: number): void {
  for (let at = start; at < rawUrl.length; at++) {
    const code = rawUrl.charCodeAt(at);
    if (code <= 0x20 || code >= DELETE || code === HASH) {
      throw refused('its query holds a character that must be percent-encoded');
    }
  }
}

function refused(why: string): Problem {
  return new Problem('bad_request_target', `The request target is not acceptable: ${why}`);
}
