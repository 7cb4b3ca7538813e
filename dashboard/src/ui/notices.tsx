/**
 * Short messages of what was done or went wrong: shown in a corner, and read out.
 */
import { signal } from '@preact/signals';

type Kind = 'done' | 'problem';

interface Notice {
  readonly id: number;
  readonly text: string;
  readonly kind: Kind;
}

const SHOWN_MS = { done: 5_000, problem: 12_000 } as const satisfies Record<Kind, number>;
const MOST = 4;

const notices = signal<readonly Notice[]>([]);
let last = 0;

export function notify(text: string, kind: Kind = 'done'): void {
  last += 1;
  const notice = { id: last, text, kind };
  notices.value = [...notices.value, notice].slice(-MOST);
  setTimeout(() => dismiss(notice.id), SHOWN_MS[kind]);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter(each => each.id !== id);
}

export function Notices() {
  return (
    <output class="notices">
      {notices.value.map(({ id, text, kind }) => (
        <div key={id} class={`notice ${kind}`}>
          <span>{text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ×
          </button>
        </div>
      ))}
    </output>
  );
}
