/**
 * A region of its own that scrolls: with a name, and by keyboard too, which can scroll only what has the focus.
 */
import type { ComponentChildren } from 'preact';

export interface ScrollProps {
  readonly label: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}

export function Scroll({ label, class: name = 'scroll', children }: ScrollProps) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- by keyboard it scrolls only with the focus
    <section class={name} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
