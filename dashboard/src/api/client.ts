/**
 * The management API, asked with the session's cookie. A refusal is an error that says what the service said.
 */
import { hrefOf } from '../location.ts';
import { loseSession } from '../session.ts';

const PREFIX = '/api/v1/';

export type Parameters = Readonly<Record<string, string | undefined>>;

export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, { title, detail, code }: ProblemJson) {
    super(detail ?? title ?? `The service answered ${status}`);
    this.status = status;
    this.code = code;
  }
}

interface ProblemJson {
  readonly title?: string;
  readonly detail?: string;
  readonly code?: string;
}

export async function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  return JSON.parse(await getText(path, parameters, signal)) as T;
}

/** As it was written: a number that JavaScript would round is still whole in it. */
export async function getText(
  path: string,
  parameters: Parameters = {},
  signal?: AbortSignal,
): Promise<string> {
  const answer = await ask(hrefOf(PREFIX + path, parameters), signal === undefined ? {} : { signal });
  return answer.text();
}

/** With a key, so that a request which is sent twice does its work once. */
export async function post<T>(path: string, body?: unknown): Promise<T> {
  const answer = await ask(PREFIX + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': randomKey() },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as T;
}

async function ask(href: string, init: RequestInit): Promise<Response> {
  const answer = await fetch(href, init).catch(unanswered);
  if (answer.ok) return answer;
  if (answer.status === 401) loseSession();
  throw new Refused(answer.status, await problemOf(answer));
}

/** What browsers say of it differs, and says little. */
function unanswered(error: Error): never {
  throw error.name === 'AbortError' ? error : new Error('The service does not answer', { cause: error });
}

async function problemOf(answer: Response): Promise<ProblemJson> {
  try {
    return (await answer.json()) as ProblemJson;
  } catch {
    return {}; // a proxy in between says what it likes
  }
}

/** `crypto.randomUUID` is there only over TLS and on loopback. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}
