/**
 * The box that takes a run id, typed or pasted, and goes to its delivery.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { go } from '../location.ts';
import { notify } from './notices.tsx';

const RUN_ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/i;

export function JumpBox() {
  const text = useSignal('');
  const box = useRef<HTMLInputElement>(null);

  const jump = (from: string): boolean => {
    const runId = RUN_ID.exec(from)?.[0].toLowerCase();
    if (runId === undefined) return false;
    text.value = '';
    go(`/deliveries/${runId}`);
    return true;
  };

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
        return;
      event.preventDefault();
      box.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);

  return (
    <search>
      <form
        onSubmit={event => {
          event.preventDefault();
          if (!jump(text.value))
            notify('A run id looks like 0192f1d2-1a2b-7c3d-8e4f-5a6b7c8d9e0f', 'problem');
        }}
      >
        <input
          ref={box}
          type="search"
          aria-label="Go to a run id"
          aria-keyshortcuts="/"
          placeholder="Run id  ( / )"
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={event => {
            text.value = event.currentTarget.value;
          }}
          onPaste={event => {
            if (jump(event.clipboardData?.getData('text') ?? '')) event.preventDefault();
          }}
        />
      </form>
    </search>
  );
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null;
}
