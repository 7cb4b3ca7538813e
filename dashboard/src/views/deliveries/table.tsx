/**
 * The deliveries of the list as a table; on a phone each row folds into a card.
 */
import type { Signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { Delivery } from '../../api/shapes.ts';
import { type Selection, toggled, toggledAll, toggledTo } from '../../selection.ts';
import { Ago, State } from '../../ui/parts.tsx';
import { Scroll } from '../../ui/scroll.tsx';
import { useRowKeys } from './row-keys.ts';
import { type Row, timeIn } from './rows.ts';
import { RunId } from './run-id.tsx';

export interface TableProps {
  readonly rows: readonly Row[];
  readonly selection: Signal<Selection>;
  /** Where there are several, an app's name does not say whose it is. */
  readonly showProject: boolean;
  readonly stale: boolean;
}

export function DeliveryTable({ rows, selection, showProject, stale }: TableProps) {
  const table = useRef<HTMLTableElement>(null);
  const shown = useRef<readonly string[]>([]);
  shown.current = rows.map(row => row.delivery.run_id);
  useRowKeys(table);
  const select = useRef((runId: string, range: boolean): void => {
    selection.value = range
      ? toggledTo(selection.value, runId, shown.current)
      : toggled(selection.value, runId);
  });
  return (
    <Scroll label="List of deliveries">
      <table ref={table} class="deliveries" aria-busy={stale}>
        <Head shown={shown.current} selection={selection} />
        <tbody>
          {rows.map(row => (
            <DeliveryRow
              key={row.delivery.run_id}
              row={row}
              selection={selection}
              showProject={showProject}
              onSelect={select.current}
            />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Head({
  shown,
  selection,
}: {
  readonly shown: readonly string[];
  readonly selection: Signal<Selection>;
}) {
  const { ids } = selection.value;
  const all = shown.length > 0 && shown.every(id => ids.has(id));
  return (
    <thead>
      <tr>
        <th scope="col" class="tick">
          <label class="inline">
            <input
              type="checkbox"
              aria-label="Select all shown"
              checked={all}
              indeterminate={!all && ids.size > 0}
              onChange={() => {
                selection.value = toggledAll(selection.value, shown);
              }}
            />
            <span class="phone">Select all shown</span>
          </label>
        </th>
        <th scope="col" class="when">
          When
        </th>
        <th scope="col" class="run">
          Run
        </th>
        <th scope="col" class="app">
          App
        </th>
        <th scope="col" class="how">
          State
        </th>
        <th scope="col" class="answer">
          Last answer
        </th>
        <th scope="col" class="number tries">
          Attempts
        </th>
        <th scope="col">Target</th>
      </tr>
    </thead>
  );
}

interface RowProps {
  readonly row: Row;
  readonly selection: Signal<Selection>;
  readonly showProject: boolean;
  readonly onSelect: (runId: string, range: boolean) => void;
}

function DeliveryRow({ row, selection, showProject, onSelect }: RowProps) {
  const { delivery, stray, fresh } = row;
  const { run_id: runId, app, project_id: project, state, reason, target } = delivery;
  const selected = selection.value.ids.has(runId);
  return (
    <tr class={`${selected ? 'selected' : ''} ${stray ? 'stray' : ''} ${fresh ? 'fresh' : ''}`}>
      <td class="tick">
        <input
          type="checkbox"
          aria-label={`Select ${runId}`}
          checked={selected}
          onClick={event => onSelect(runId, event.shiftKey)}
        />
      </td>
      <td class="when">
        <Ago at={new Date(timeIn(runId)).toISOString()} />
      </td>
      <td class="run">
        <RunId id={runId} href={`/deliveries/${runId}`} />
      </td>
      <td class="app" title={`${project} / ${app}`}>
        {app}
        {showProject && <span class="under">{project}</span>}
      </td>
      <td class="how">
        <State state={state} reason={reason} />
        {stray && <span class="under">no longer matches</span>}
      </td>
      <td class="answer">
        <LastAnswer delivery={delivery} />
      </td>
      <td class="number tries">
        <Tries delivery={delivery} />
      </td>
      <td class="target" title={target}>
        {placeOf(target)}
      </td>
    </tr>
  );
}

function LastAnswer({
  delivery: { last_status: status, last_error: error },
}: {
  readonly delivery: Delivery;
}) {
  if (error !== undefined) return <span class="problem">{error}</span>;
  if (status === undefined) return <span class="faint">none yet</span>;
  return <span class={status < 300 ? '' : 'problem'}>{status}</span>;
}

function Tries({ delivery: { attempt_count: attempts, round } }: { readonly delivery: Delivery }) {
  return (
    <>
      {attempts}
      <span class="phone">{attempts === 1 ? ' attempt' : ' attempts'}</span>
      {round > 1 && <span class="under">round {round}</span>}
    </>
  );
}

/** Its host and path: the rest is in the title. */
function placeOf(target: string): string {
  const url = URL.parse(target);
  return url === null ? target : url.host + url.pathname;
}
