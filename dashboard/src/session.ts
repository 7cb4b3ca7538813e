/**
 * Whether whoever looks may see: the service asks for its admin token unless it is on loopback, and gives a
 * cookie for it that no script can read.
 */
import { signal } from '@preact/signals';
import { setServiceTime } from './clock.ts';

export interface Session {
  readonly login_required: boolean;
  readonly logged_in: boolean;
  readonly version: string;
  readonly now: string;
}

/** Undefined until it is known. */
export const session = signal<Session | undefined>(undefined);

/** Why it is not known, where the service does not answer. */
export const unreachable = signal(false);

export async function openSession(): Promise<void> {
  const asked = Date.now();
  try {
    const found = (await (await fetch('/session')).json()) as Session;
    setServiceTime(Date.parse(found.now), asked, Date.now());
    session.value = found;
    unreachable.value = false;
  } catch {
    unreachable.value = true;
  }
}

/** Undefined where it went well, otherwise what to tell. */
export async function logIn(token: string): Promise<string | undefined> {
  const answer = await fetch('/session', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) {
    await openSession();
    return undefined;
  }
  if (answer.status === 401) return 'That is not the admin token.';
  if (answer.status === 429) return 'Too many attempts. Wait a minute, then try again.';
  return `The service answered ${answer.status}.`;
}

export async function logOut(): Promise<void> {
  await fetch('/session', { method: 'DELETE' });
  loseSession();
}

/** The service has said that it does not know us any more. */
export function loseSession(): void {
  if (session.value !== undefined)
    session.value = { ...session.value, login_required: true, logged_in: false };
}
