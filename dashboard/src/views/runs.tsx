/**
 * The list of runs: asynchronous calls that wait, run or have ended, with a way to end those that have not.
 */
import { useSignal } from '@preact/signals';
import { Refused } from '../api/client.ts';
import type { Run, RunState } from '../api/shapes.ts';
import { go, parameter, withParameters } from '../location.ts';
import type { Loaded } from '../resource.ts';
import '../style/deliveries.css';
import '../style/runs.css';
import { Waiting } from '../ui/parts.tsx';
import type { Page } from './deliveries/reading.ts';
import { CancelRun } from './runs/cancel-run.tsx';
import { RunTable } from './runs/table.tsx';
import { useRuns } from './runs/use-runs.ts';

const STATES: readonly RunState[] = ['queued', 'running', 'succeeded', 'failed', 'cancelled'];

export function Runs() {
  const [state, app] = [parameter('state'), parameter('app')];
  const runs = useRuns({ project: parameter('project'), state, app, cursor: parameter('cursor') });
  const cancelled = useSignal<Run | undefined>(undefined);
  const ask = (run: Run | undefined): void => {
    cancelled.value = run;
  };
  const found = runs.state.value;
  const isWrong = found.error instanceof Refused && found.error.status === 400;
  return (
    <>
      <h1>Runs</h1>
      <RunFilter chosen={state} app={app} trouble={isWrong ? found.error?.message : undefined} />
      {!isWrong && <Waiting of={found} onRetry={runs.reload} />}
      {!isWrong && (
        <Found
          of={found}
          isNarrowed={state !== undefined || app !== undefined}
          onCancel={ask}
          onOlder={runs.readOlder}
        />
      )}
      {cancelled.value !== undefined && (
        <CancelRun run={cancelled.value} onDone={runs.reload} onClose={() => ask(undefined)} />
      )}
    </>
  );
}

interface RunFilterProps {
  readonly chosen: string | undefined;
  readonly app: string | undefined;
  readonly trouble: string | undefined;
}

function RunFilter({ chosen, app, trouble }: RunFilterProps) {
  const states = [undefined, ...STATES];
  return (
    <div class="spread">
      <nav class="tabs" aria-label="State">
        <div class="choices">
          {states.map(state => (
            <a
              key={state ?? ''}
              href={withParameters({ state, cursor: undefined })}
              aria-current={state === chosen ? 'page' : undefined}
            >
              {state ?? 'all'}
            </a>
          ))}
        </div>
      </nav>
      <form class="row" aria-label="Filters" onSubmit={event => event.preventDefault()}>
        <span class="problem" role="alert">
          {trouble}
        </span>
        <label class="inline">
          App
          <input
            type="search"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            value={app ?? ''}
            onChange={event =>
              go(withParameters({ app: event.currentTarget.value.trim(), cursor: undefined }))
            }
          />
        </label>
      </form>
    </div>
  );
}

interface FoundProps {
  readonly of: Loaded<Page<Run>>;
  readonly isNarrowed: boolean;
  readonly onCancel: (run: Run) => void;
  readonly onOlder: (next: string) => void;
}

function Found({ of: { data }, isNarrowed, onCancel, onOlder }: FoundProps) {
  if (data === undefined) return null;
  const { items, next } = data;
  if (items.length === 0) return <Empty isNarrowed={isNarrowed} />;
  return (
    <>
      <RunTable runs={items} onCancel={onCancel} />
      <div class="row">
        {next === null ? (
          <span class="faint">There are no older ones.</span>
        ) : (
          <button type="button" onClick={() => onOlder(next)}>
            Older
          </button>
        )}
        {parameter('cursor') !== undefined && (
          <a href={withParameters({ cursor: undefined })}>Back to the newest</a>
        )}
      </div>
    </>
  );
}

function Empty({ isNarrowed }: { readonly isNarrowed: boolean }) {
  if (isNarrowed) return <p class="panel">No run matches.</p>;
  return (
    <div class="panel">
      <h2>No runs yet</h2>
      <p>
        Each call with <code>?async=true</code> makes one: the caller gets an answer at once, and the run
        waits for its turn here.
      </p>
    </div>
  );
}
