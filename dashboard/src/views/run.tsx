/**
 * One asynchronous call: how it stands, and what it ended with. It is read again until it has ended.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { getText, post, Refused } from '../api/client.ts';
import type { RunWithAnswer } from '../api/shapes.ts';
import { now } from '../clock.ts';
import { bytes, duration, span } from '../format.ts';
import { hrefOf } from '../location.ts';
import { useResource } from '../resource.ts';
import '../style/delivery.css';
import { notify } from '../ui/notices.tsx';
import { Ago, CopyButton, State, Waiting } from '../ui/parts.tsx';
import { Fact } from './delivery/facts.tsx';
import { readRun, type StoredRun } from './delivery/stored.ts';
import { TextView } from './delivery/text-view.tsx';

const UNENDED_EVERY_MS = 2_000;

export function Run({ runId }: { readonly runId: string }) {
  const ended = useSignal(false);
  const { state, reload } = useResource({
    key: runId,
    load: async signal => {
      const read = readRun(await getText(`runs/${encodeURIComponent(runId)}`, {}, signal));
      ended.value = read.run.ended_at !== undefined;
      return read;
    },
    ...(!ended.value && { everyMs: UNENDED_EVERY_MS }),
  });
  const { data, error } = state.value;
  const missing = data === undefined && error instanceof Refused && error.status === 404;
  return (
    <>
      <div class="spread head">
        <div class="row">
          <h1>Run</h1>
          <code class="id">{runId}</code>
          <CopyButton text={() => runId}>Copy id</CopyButton>
        </div>
        {data !== undefined && data.run.ended_at === undefined && (
          <CancelButton run={data.run} onChange={reload} />
        )}
      </div>
      {missing ? <Missing /> : <Waiting of={state.value} onRetry={reload} />}
      {data !== undefined && (
        <>
          <RunFacts run={data.run} />
          <Answer stored={data} />
        </>
      )}
    </>
  );
}

function CancelButton({ run, onChange }: { readonly run: RunWithAnswer; readonly onChange: () => void }) {
  const busy = useSignal(false);
  async function cancel(): Promise<void> {
    busy.value = true;
    try {
      const { state } = await post<RunWithAnswer>(`runs/${run.run_id}/cancel`);
      notify(state === 'cancelled' ? 'The run is cancelled' : 'The run is being cancelled');
    } catch (error) {
      notify(
        error instanceof Refused ? error.message : 'The service did not answer: it may be cancelled, or not.',
        'problem',
      );
    }
    busy.value = false;
    onChange();
  }
  return (
    <button
      type="button"
      class="danger"
      disabled={busy.value || run.cancelling === true}
      onClick={() => void cancel()}
    >
      {run.cancelling === true ? 'Cancelling…' : 'Cancel'}
    </button>
  );
}

function RunFacts({ run }: { readonly run: RunWithAnswer }) {
  const { run_id, state, cancelling, app, project_id, created_at, started_at, ended_at, starts } = run;
  return (
    <dl class="known panel">
      <Fact name="State">
        <output>
          <State state={state} />
          {cancelling === true && ' is being cancelled'}
        </output>
      </Fact>
      <Fact name="App">
        <a href={hrefOf('/runs', { project: project_id, app })}>{app}</a>
      </Fact>
      <Fact name="Project">{project_id}</Fact>
      <Fact name="Queued">
        <Ago at={created_at} />
      </Fact>
      {started_at !== undefined && (
        <Fact name="Begun">
          <Ago at={started_at} />
          {starts > 1 && <span class="faint">start {starts}</span>}
        </Fact>
      )}
      {ended_at !== undefined && (
        <Fact name="Ended">
          <Ago at={ended_at} />
        </Fact>
      )}
      <Fact name={ended_at === undefined ? 'So far' : 'Took'}>
        <Elapsed run={run} />
      </Fact>
      {run.status_code !== undefined && (
        <Fact name="Status">
          <span class="mono">{run.status_code}</span>
        </Fact>
      )}
      {run.delivery !== undefined && (
        <Fact name="Delivery" wide>
          {run.delivery.state === undefined ? (
            <span class="faint">once it has ended, to</span>
          ) : (
            <>
              <State state={run.delivery.state} reason={run.delivery.reason} />
              <a href={`/deliveries/${run_id}`}>Its delivery</a>
              <span class="faint">to</span>
            </>
          )}
          <code>{run.delivery.target}</code>
        </Fact>
      )}
    </dl>
  );
}

/** In the queue, while it is there; otherwise at work. */
function Elapsed({ run }: { readonly run: RunWithAnswer }) {
  const { created_at, started_at, ended_at } = run;
  const from = Date.parse(run.state === 'queued' ? created_at : (started_at ?? created_at));
  if (ended_at !== undefined) return <span>{duration(Math.max(0, Date.parse(ended_at) - from))}</span>;
  return (
    <span>
      {span(Math.max(0, now.value - from))} {run.state === 'queued' ? 'in the queue' : 'at work'}
    </span>
  );
}

function Answer({ stored }: { readonly stored: StoredRun }) {
  const { run, result } = stored;
  return (
    <section class="panel" aria-labelledby="answer">
      <h2 id="answer">Answer</h2>
      {run.ended_at === undefined && <p class="faint">It will be here when the run has ended.</p>}
      {run.error !== undefined && (
        <p>
          <span class="state bad mono">{run.error.type}</span> {run.error.message}
        </p>
      )}
      {notesOf(run).map((note, index) => (
        <p key={index} class="faint">
          {note}
        </p>
      ))}
      {result !== undefined && (
        <TextView
          label="Result"
          text={result}
          encoded={run.result_encoding === 'base64'}
          empty="The answer had no body."
          fileName={`${run.run_id}.result.json`}
        />
      )}
    </section>
  );
}

function notesOf(run: RunWithAnswer): ComponentChildren[] {
  const { result_expired, result_omitted, content_type, content_encoding } = run;
  return [
    result_expired === true &&
      'The answer is not stored any more: it is deleted after async.retention, a day unless configured otherwise.',
    result_omitted !== undefined &&
      `The answer had ${bytes(result_omitted.bytes)}, more than the ${bytes(result_omitted.limit)} that webhooks.maxBody allows, and was not kept.`,
    content_type !== undefined && `Its type is ${content_type}.`,
    content_encoding !== undefined && `It is still encoded (${content_encoding}), which could not be undone.`,
  ].filter(note => note !== false);
}

function Missing() {
  return (
    <section class="panel">
      <h2>No run has this id</h2>
      <ul class="causes">
        <li>
          Only calls with <code>async=true</code> are kept as runs; others are among the{' '}
          <a href="/deliveries">deliveries</a>, where they had a <code>webhookEndpoint</code>.
        </li>
        <li>
          Runs are deleted after <code>async.retention</code>, a day after their end unless configured
          otherwise.
        </li>
      </ul>
      <p>
        <a href="/runs">Go to the runs</a>
      </p>
    </section>
  );
}
