/**
 * One delivery: what happened to the call, each attempt, and what was sent. It is read again whenever the service
 * tells of a change, and now and then while it is pending.
 */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, getText, Refused } from '../api/client.ts';
import { openLive } from '../api/live.ts';
import { go } from '../location.ts';
import { useResource } from '../resource.ts';
import '../style/delivery.css';
import { timeIn } from '../timeline.ts';
import { CopyButton, Waiting } from '../ui/parts.tsx';
import { Actions } from './delivery/actions.tsx';
import { Facts } from './delivery/facts.tsx';
import { SentRequest } from './delivery/request.tsx';
import { readDelivery, type StoredDelivery } from './delivery/stored.ts';
import { Timeline } from './delivery/timeline.tsx';

const PENDING_EVERY_MS = 15_000;

export function Delivery({ runId }: { readonly runId: string }) {
  const pending = useSignal(true);
  const { state, reload } = useResource({
    key: runId,
    load: async (signal): Promise<StoredDelivery> => {
      const { data: before } = state.value;
      const known = before === undefined ? {} : { exclude: 'body' }; // it may be large, and stays as it is
      const read = readDelivery(await getText(`deliveries/${encodeURIComponent(runId)}`, known, signal));
      pending.value = read.detail.state === 'pending';
      return { ...read, ...before, detail: read.detail };
    },
    ...(pending.value && { everyMs: PENDING_EVERY_MS }),
  });
  const { data, error } = state.value;
  const answered = data !== undefined || error !== undefined;
  useEffect(() => (answered ? onChangeOf(runId, reload) : undefined), [runId, answered]);

  const missing = data === undefined && error instanceof Refused && error.status === 404;
  return (
    <>
      <div class="spread head">
        <div class="row">
          <h1>Delivery</h1>
          <code class="id">{runId}</code>
          <CopyButton text={() => runId}>Copy id</CopyButton>
        </div>
        {data !== undefined && <Actions delivery={data.detail} onChange={reload} />}
      </div>
      {missing ? <Missing runId={runId} /> : <Waiting of={state.value} onRetry={reload} />}
      {data !== undefined && <Known stored={data} />}
    </>
  );
}

function Known({ stored }: { readonly stored: StoredDelivery }) {
  const { detail, body, ranMs } = stored;
  return (
    <>
      <Facts delivery={detail} />
      <div class="halves">
        <Timeline delivery={detail} ranMs={ranMs} />
        <SentRequest delivery={detail} body={body} />
      </div>
    </>
  );
}

/** The stream has no filter for one delivery, but few others came in within the same millisecond. */
function onChangeOf(runId: string, reload: () => void): (() => void) | undefined {
  const at = timeIn(runId);
  if (at === undefined) return undefined;
  return openLive(
    { since: new Date(at).toISOString(), until: new Date(at + 1).toISOString() },
    {
      onChange(deliveries) {
        if (deliveries.some(each => each.run_id === runId)) reload();
      },
      onMissed: reload,
    },
  );
}

/** It may be a run that has not ended, or one without a delivery. */
function Missing({ runId }: { readonly runId: string }) {
  const path = `runs/${encodeURIComponent(runId)}`;
  const { state } = useResource({
    key: path,
    load: async signal => {
      await get(path, {}, signal);
      go(`/${path}`, { replace: true });
    },
  });
  if (state.value.loading) return <p class="faint">Looking for a run with this id…</p>;
  return (
    <section class="panel">
      <h2>No delivery has this id</h2>
      <ul class="causes">
        <li>
          A call makes a delivery only with a <code>webhookEndpoint</code>.
        </li>
        <li>
          A delivery is there once the call is answered. While an asynchronous call runs, it is among the{' '}
          <a href="/runs">runs</a>.
        </li>
        <li>
          Deliveries are deleted after <code>webhooks.retention</code>, 30 days unless configured otherwise.
        </li>
        <li>An id is whole only with all its 36 characters.</li>
      </ul>
      <p>
        <a href="/deliveries">Go to the deliveries</a>
      </p>
    </section>
  );
}
