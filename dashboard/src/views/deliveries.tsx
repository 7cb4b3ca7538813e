/**
 * The list of deliveries: found by a filter that the address holds, live, and to be redelivered, those selected or
 * all that the filter finds.
 */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { get, Refused } from '../api/client.ts';
import { openLive } from '../api/live.ts';
import type { DeliveryList } from '../api/shapes.ts';
import { type Filter, filterOf } from '../filters.ts';
import { hrefOf, parameter, query } from '../location.ts';
import { kept, NONE_SELECTED, type Selection } from '../selection.ts';
import '../style/deliveries.css';
import { Waiting } from '../ui/parts.tsx';
import { Actions } from './deliveries/actions.tsx';
import { End, News } from './deliveries/edges.tsx';
import { FilterForm } from './deliveries/filter-form.tsx';
import { createList, type List } from './deliveries/list.ts';
import { LiveSwitch } from './deliveries/live-switch.tsx';
import { JobStrip } from './deliveries/matching.tsx';
import { DeliveryTable } from './deliveries/table.tsx';

/** Further down, what comes in above would move what is read. */
const SCROLLED_PX = 100;

export function Deliveries() {
  const filter = filterOf(query.value);
  const isLive = parameter('live') !== 'off';
  const selection = useSignal<Selection>(NONE_SELECTED);
  const list = useList(filter, { isLive, selection });
  const { error } = list.progress.value;
  const isWrong = error instanceof Refused && error.status === 400;
  return (
    <>
      <div class="spread">
        <h1>Deliveries</h1>
        <LiveSwitch isOn={isLive} connection={list.connection.value} onRead={list.read} />
      </div>
      <FilterForm filter={filter} trouble={isWrong ? error.message : undefined} />
      <JobStrip />
      {!isWrong && <Found list={list} filter={filter} selection={selection} />}
    </>
  );
}

interface ListOptions {
  readonly isLive: boolean;
  readonly selection: Signal<Selection>;
}

function useList(filter: Filter, { isLive, selection }: ListOptions): List {
  const key = hrefOf('', filter);
  const list = useMemo(
    () =>
      createList({
        filter,
        read: (parameters, signal) => get<DeliveryList>('deliveries', parameters, signal),
        openLive,
        isBusy: () => selection.value.ids.size > 0 || scrollY > SCROLLED_PX,
      }),
    [key],
  );
  useEffect(() => {
    selection.value = NONE_SELECTED;
    list.read();
    return list.stop;
  }, [list]);
  useEffect(() => list.setLive(isLive), [list, isLive]);
  return list;
}

interface FoundProps {
  readonly list: List;
  readonly filter: Filter;
  readonly selection: Signal<Selection>;
}

function Found({ list, filter, selection }: FoundProps) {
  const last = useRef(list);
  const { known, error, reading } = list.progress.value;
  if (known || error !== undefined) last.current = list;
  const { shown, held } = last.current.rows.value;
  const stale = last.current !== list;

  useEffect(() => {
    selection.value = kept(
      selection.value,
      shown.map(row => row.delivery.run_id),
    );
  }, [shown]);

  const projects = new Set(shown.map(row => row.delivery.project_id));
  return (
    <>
      <Waiting
        of={{ data: known || stale ? shown : undefined, error, loading: reading }}
        onRetry={list.read}
      />
      <Actions
        shown={shown.length}
        filter={filter}
        selection={selection}
        onRedelivered={() => {
          if (list.connection.value !== 'live') list.read(); // nobody else tells what becomes of them
        }}
      >
        {held.length > 0 && <News count={held.length} onShow={list.release} />}
      </Actions>
      {shown.length > 0 && (
        <DeliveryTable rows={shown} selection={selection} showProject={projects.size > 1} stale={stale} />
      )}
      <End list={list} filter={filter} />
    </>
  );
}
