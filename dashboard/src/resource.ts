/**
 * Something that is read from the service: what came last, what went wrong, and reading it again, by hand or
 * every so often while somebody looks.
 */
import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useCallback, useEffect } from 'preact/hooks';

export interface Loaded<T> {
  /** What came last; it stays while the same is read again, and while it cannot be. */
  readonly data: T | undefined;
  readonly error: Error | undefined;
  readonly loading: boolean;
}

export interface Resource<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  readonly reload: () => void;
}

export interface ResourceOptions<T> {
  /** What is read: another key is another thing, and begins without data. */
  readonly key: string;
  readonly load: (signal: AbortSignal) => Promise<T>;
  readonly everyMs?: number;
}

const NOTHING = { data: undefined, error: undefined, loading: true };

export function useResource<T>({ key, load, everyMs }: ResourceOptions<T>): Resource<T> {
  const state = useSignal<Loaded<T>>(NOTHING);
  const round = useSignal(0);
  const current = round.value;

  useEffect(() => {
    state.value = NOTHING;
  }, [key]);

  useEffect(() => {
    const stopped = new AbortController();
    state.value = { ...state.value, loading: true };
    load(stopped.signal).then(
      data => {
        if (!stopped.signal.aborted) state.value = { data, error: undefined, loading: false };
      },
      (error: Error) => {
        if (!stopped.signal.aborted) state.value = { ...state.value, error, loading: false };
      },
    );
    return () => stopped.abort();
  }, [key, current]);

  const reload = useCallback(() => {
    round.value += 1;
  }, []);

  useEffect(() => {
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden && !state.value.loading) reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);

  return { state, reload };
}
