/**
 * Runs as a table, their times counting on while they run; on a phone each row folds into a card.
 */
import type { Run } from '../../api/shapes.ts';
import { now } from '../../clock.ts';
import { duration, span } from '../../format.ts';
import { Ago, State } from '../../ui/parts.tsx';
import { Scroll } from '../../ui/scroll.tsx';
import { RunId } from '../deliveries/run-id.tsx';
import { runTimes } from './run-times.ts';

export interface RunTableProps {
  readonly runs: readonly Run[];
  readonly onCancel: (run: Run) => void;
}

export function RunTable({ runs, onCancel }: RunTableProps) {
  const showProject = new Set(runs.map(run => run.project_id)).size > 1;
  return (
    <Scroll label="List of runs">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Run</th>
            <th scope="col">App</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Starts
            </th>
            <th scope="col" class="number">
              Waited
            </th>
            <th scope="col" class="number">
              Ran for
            </th>
            <th scope="col">Delivery</th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map(run => (
            <RunRow key={run.run_id} run={run} showProject={showProject} onCancel={onCancel} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

interface RowProps {
  readonly run: Run;
  readonly showProject: boolean;
  readonly onCancel: (run: Run) => void;
}

function RunRow({ run, showProject, onCancel }: RowProps) {
  const { run_id: runId, state, starts, cancelling = false } = run;
  const open = run.ended_at === undefined;
  return (
    <tr>
      <td class="when">
        <Ago at={run.created_at} />
      </td>
      <td class="run">
        <RunId id={runId} href={`/runs/${runId}`} />
      </td>
      <td class="app">
        {run.app}
        {showProject && <span class="under">{run.project_id}</span>}
      </td>
      <td class="how">
        <State state={state} />
        {cancelling && open && <span class="under">cancelling</span>}
        {run.error !== undefined && run.error.type !== state && <span class="under">{run.error.type}</span>}
      </td>
      <td class="number starts">
        {starts}
        <span class="phone">{starts === 1 ? ' start' : ' starts'}</span>
      </td>
      <Times run={run} />
      <td class="delivery">
        <RunDelivery run={run} />
      </td>
      <td class="number act">
        {open && (
          <button
            type="button"
            aria-label={`Cancel ${runId}`}
            disabled={cancelling}
            onClick={() => onCancel(run)}
          >
            Cancel
          </button>
        )}
      </td>
    </tr>
  );
}

/** Only what counts on is drawn again with each beat of the clock. */
function Times({ run }: { readonly run: Run }) {
  const { waitedMs, ranMs } = runTimes(run, run.ended_at === undefined ? now.value : 0);
  const show = run.ended_at === undefined ? span : duration;
  return (
    <>
      <td class="number waited">
        <span class="phone">waited </span>
        {run.state === 'queued' ? span(waitedMs) : duration(waitedMs)}
      </td>
      <td class="number ran">
        <span class="phone">ran for </span>
        {ranMs === undefined ? <span class="faint">–</span> : show(ranMs)}
      </td>
    </>
  );
}

function RunDelivery({ run: { run_id: runId, delivery } }: { readonly run: Run }) {
  if (delivery === undefined) return <span class="faint">none asked for</span>;
  if (delivery.state === undefined) return <span class="faint">when it has ended</span>;
  return (
    <a href={`/deliveries/${runId}`}>
      <State state={delivery.state} reason={delivery.reason} />
    </a>
  );
}
