/**
 * Small pieces that several views are made of.
 */
import type { ComponentChildren } from 'preact';
import type { AppFacts, DeliveryState, FailureReason, Replica, RunState } from '../api/shapes.ts';
import { now } from '../clock.ts';
import { ago } from '../format.ts';
import type { Loaded } from '../resource.ts';
import { notify } from './notices.tsx';

const TONES: Readonly<Record<string, 'good' | 'bad' | 'busy'>> = {
  delivered: 'good',
  succeeded: 'good',
  ready: 'good',
  pending: 'busy',
  queued: 'busy',
  running: 'busy',
  starting: 'busy',
  pausing: 'bad',
  failed: 'bad',
  failing: 'bad',
};

/** A state in a word, told by its colour as well but never by that alone. */
export function State({
  state,
  reason,
}: {
  readonly state: DeliveryState | RunState | AppFacts['state'] | Replica['state'];
  readonly reason?: FailureReason | undefined;
}) {
  return (
    <span class={`state ${TONES[state] ?? 'plain'}`}>
      {state}
      {reason !== undefined && <span class="reason"> · {reason}</span>}
    </span>
  );
}

/** How long ago, with the exact time for whoever asks. */
export function Ago({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={at}>
      {ago(Date.parse(at), now.value)}
    </time>
  );
}

/** What stands in for data that is not there: on its way, or not to be had. Old data stays, with a word on why. */
export function Waiting({ of, onRetry }: { readonly of: Loaded<unknown>; readonly onRetry: () => void }) {
  if (of.error !== undefined) {
    return (
      <div class="trouble" role="alert">
        <p>
          {of.data === undefined ? 'This could not be read' : 'This could not be read again'}:{' '}
          {of.error.message}
        </p>
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      </div>
    );
  }
  return of.data === undefined ? (
    <p class="faint" aria-busy="true">
      Reading…
    </p>
  ) : null;
}

/** A number with its name. */
export function Figure({
  name,
  children,
  note,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
  readonly note?: ComponentChildren;
}) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        <span class="value">{children}</span>
        {note !== undefined && <span class="note">{note}</span>}
      </dd>
    </div>
  );
}

export function CopyButton({
  text,
  children,
}: {
  readonly text: () => string;
  readonly children: ComponentChildren;
}) {
  return (
    <button type="button" onClick={() => void copy(text())}>
      {children}
    </button>
  );
}

/** The clipboard of browsers is there only over TLS and on loopback; the old way is there everywhere. */
async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify('Copied');
  } catch {
    notify(copyBySelection(text) ? 'Copied' : 'The browser did not let this be copied', 'done');
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'hidden';
  document.body.append(area);
  area.select();
  try {
    return document.execCommand('copy');
  } finally {
    area.remove();
  }
}
