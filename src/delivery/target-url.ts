/**
 * Reads the URL of a target as somebody gave it: absolute, http or https, with its user information taken out
 * of it and made into a header. What is wrong with one is told without repeating it: it may carry credentials.
 */
import { percentDecode } from './percent.ts';

export interface TargetUrl {
  /** Without user information and fragment. */
  readonly url: URL;
  /** The value of a Basic header (RFC 7617), where there was user information. */
  readonly authorization?: string;
}

/** What is wrong with it, to be put behind its name. */
export interface UnreadableTarget {
  readonly wrong: string;
}

const MAX_LENGTH = 2048;

export function readTargetUrl(value: string): TargetUrl | UnreadableTarget {
  const wrong = faultOf(value);
  if (wrong !== undefined) return { wrong };
  const url = URL.parse(value);
  if (url === null) return { wrong: 'is not a valid URL' };
  url.hash = '';
  if (url.username === '' && url.password === '') return { url };
  return takeUserInfo(url);
}

function faultOf(value: string): string | undefined {
  if (value === '') return 'is empty';
  if (value.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (/[\s\p{Cc}]/u.test(value)) return 'holds white space or control characters';
  // Asked of the string, since the URL parser also takes `http:host` and `http:///host`.
  if (!/^https?:\/\/[^/?#\\]/i.test(value)) return 'is not an absolute http or https URL';
  return undefined;
}

function takeUserInfo(url: URL): TargetUrl | UnreadableTarget {
  const user = percentDecode(url.username);
  const password = percentDecode(url.password);
  if (user === undefined || password === undefined) {
    return { wrong: 'holds a user name or password that is not percent-encoded UTF-8' };
  }
  // RFC 7617, 2: a colon ends the user name, and neither part holds control characters.
  if (user.includes(':') || /\p{Cc}/u.test(user + password)) {
    return { wrong: 'holds a user name or password that a Basic header cannot carry' };
  }
  url.username = '';
  url.password = '';
  const credentials = Buffer.from(`${user}:${password}`, 'utf8').toString('base64');
  return { url, authorization: `Basic ${credentials}` };
}
