/**
 * Deliveries as they change, from the service's stream. Changes are told together, a few times a second, however
 * many there are. The browser connects again by itself where the connection breaks, and this does where the
 * service has refused it. What changed before it opens, and what the service could not tell one by one, is for
 * whoever listens to read. A page that nobody sees lets go of its connection: a browser has only six of them for
 * all its tabs.
 */
import { hrefOf } from '../location.ts';
import { openSession, session } from '../session.ts';
import { createBatch } from './batch.ts';
import type { Parameters } from './client.ts';
import type { Delivery } from './shapes.ts';

export type Connection = 'connecting' | 'live' | 'reconnecting';

export interface LiveListener {
  /** Each delivery once, as it was last told. */
  onChange(deliveries: readonly Delivery[]): void;
  /** Changes until now were not all told, as when it opens, for the first time or again; those from now on are. */
  onMissed(): void;
  onConnection?(connection: Connection): void;
}

const STREAM = '/api/v1/deliveries/stream';
const RETRY_MS = 3_000;

/** The returned function ends it. */
export function openLive(parameters: Parameters, listener: LiveListener): () => void {
  const batch = createBatch<Delivery>({ key: each => each.run_id, tell: each => listener.onChange(each) });
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;

  function connect(): void {
    source = new EventSource(hrefOf(STREAM, parameters));
    source.addEventListener('delivery', event => batch.add(JSON.parse(event.data as string) as Delivery));
    source.addEventListener('open', () => {
      listener.onConnection?.('live');
      listener.onMissed();
    });
    source.addEventListener('missed', () => listener.onMissed());
    source.addEventListener('error', () => {
      listener.onConnection?.('reconnecting');
      if (source?.readyState === EventSource.CLOSED) void refused();
    });
  }

  /** A browser tells no status: the session says whether there is any use in trying again. */
  async function refused(): Promise<void> {
    const of = source;
    await openSession();
    if (source !== of || session.value?.logged_in === false) return;
    retry = setTimeout(connect, RETRY_MS);
  }

  function disconnect(): void {
    clearTimeout(retry);
    source?.close();
    source = undefined;
    batch.drop();
  }

  function onVisibility(): void {
    disconnect();
    if (!document.hidden) connect();
  }

  listener.onConnection?.('connecting');
  if (!document.hidden) connect();
  document.addEventListener('visibilitychange', onVisibility);
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    disconnect();
  };
}
