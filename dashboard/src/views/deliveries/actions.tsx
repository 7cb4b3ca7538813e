/**
 * What can be done with the list: redeliver what is selected, or all that the filter finds.
 */
import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { Filter } from '../../filters.ts';
import { grouped } from '../../format.ts';
import { NONE_SELECTED, type Selection } from '../../selection.ts';
import { RedeliverMatching } from './matching.tsx';
import { RedeliverSelected } from './selected.tsx';

export interface ActionsProps {
  readonly shown: number;
  readonly filter: Filter;
  readonly selection: Signal<Selection>;
  readonly onRedelivered: () => void;
  readonly children: ComponentChildren;
}

/** What the dialog that is open is about. */
type Asked = { readonly runIds: readonly string[] } | 'matching' | undefined;

export function Actions({ shown, filter, selection, onRedelivered, children }: ActionsProps) {
  const asked = useSignal<Asked>(undefined);
  const { ids } = selection.value;
  const ask = (about: Asked): void => {
    asked.value = about;
  };
  const selectNone = (): void => {
    selection.value = NONE_SELECTED;
  };
  return (
    <>
      <div class="spread actions">
        <div class="row">
          <output>{ids.size > 0 && `${grouped(ids.size)} selected`}</output>
          {ids.size > 0 ? (
            <>
              <button type="button" class="primary" onClick={() => ask({ runIds: [...ids] })}>
                Redeliver
              </button>
              <button type="button" class="quiet" onClick={selectNone}>
                Select none
              </button>
            </>
          ) : (
            <span class="faint">{shown > 0 && `${grouped(shown)} shown`}</span>
          )}
          {children}
        </div>
        {/* The service refuses to redeliver simply everything. */}
        {Object.keys(filter).length > 0 && shown > 0 && (
          <button type="button" onClick={() => ask('matching')}>
            Redeliver all that match…
          </button>
        )}
      </div>
      {asked.value === 'matching' && <RedeliverMatching filter={filter} onClose={() => ask(undefined)} />}
      {typeof asked.value === 'object' && (
        <RedeliverSelected
          runIds={asked.value.runIds}
          onDone={() => {
            selectNone();
            onRedelivered();
          }}
          onClose={() => ask(undefined)}
        />
      )}
    </>
  );
}
