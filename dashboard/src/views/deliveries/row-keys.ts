/**
 * The keys of a list: `j` and `k` go from row to row, `x` selects, Enter opens. The focus goes to a row's link, so
 * that the browser does the opening and everybody is told where they are.
 */
import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

const LINK = 'tbody a';

export function useRowKeys(table: RefObject<HTMLTableElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target)) return;
      const row = rowOf(event.target);
      if (event.key === 'j') step(table.current, row, 1);
      else if (event.key === 'k') step(table.current, row, -1);
      else if (event.key === 'x') row?.querySelector<HTMLInputElement>('[type=checkbox]')?.click();
      else if (event.key === 'Enter' && isCheckbox(event.target)) row?.querySelector('a')?.click();
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

function step(table: HTMLTableElement | null, row: Element | null, by: number): void {
  const links = [...(table?.querySelectorAll<HTMLElement>(LINK) ?? [])];
  const at = links.findIndex(link => row?.contains(link));
  const to = at === -1 ? 0 : Math.min(links.length - 1, Math.max(0, at + by));
  links[to]?.focus();
  links[to]?.closest('tr')?.scrollIntoView({ block: 'nearest' });
}

function rowOf(target: EventTarget | null): Element | null {
  return target instanceof Element ? target.closest('tbody tr') : null;
}

function isCheckbox(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type === 'checkbox';
}

/** Somebody types, or a dialog is open. */
function isTaken(target: EventTarget | null): boolean {
  if (document.querySelector('dialog[open]') !== null) return true;
  const field = target instanceof Element && target.closest('input, textarea, select');
  return Boolean(field) && !isCheckbox(target);
}
