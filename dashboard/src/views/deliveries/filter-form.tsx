/**
 * The filter of the list, as a form. It has no button to send it: what is chosen applies at once, what is typed
 * on Enter or on leaving the field, and the address holds it.
 */
import { useSignal } from '@preact/signals';
import { useId, useRef } from 'preact/hooks';
import { get } from '../../api/client.ts';
import type { AppList } from '../../api/shapes.ts';
import {
  CLEARED,
  changesBy,
  DELIVERY_STATES,
  FAILURE_REASONS,
  type Filter,
  type FilterName,
  isNarrowed,
} from '../../filters.ts';
import { go, withParameters } from '../../location.ts';
import { useResource } from '../../resource.ts';

const STATUSES = ['2xx', '3xx', '4xx', '5xx'];
const SPANS = ['15m', '1h', '6h', '24h', '7d'];

export interface FilterFormProps {
  readonly filter: Filter;
  /** What the service says of it, where it does not take it. */
  readonly trouble: string | undefined;
}

export function FilterForm({ filter, trouble }: FilterFormProps) {
  const open = useSignal(false);
  const troubleId = useId();
  const apps = useResource({ key: 'apps', load: signal => get<AppList>('apps', {}, signal) }).state.value;
  const appNames = [...new Set((apps.data?.apps ?? []).map(({ app }) => app))].sort();
  return (
    <form
      class={`panel filters ${open.value ? 'open' : ''}`}
      aria-label="Filters"
      aria-describedby={troubleId}
      onSubmit={event => event.preventDefault()}
    >
      <div class="fields">
        <Choice label="State" name="state" among={DELIVERY_STATES} filter={filter} />
        <Choice label="Reason" name="reason" among={FAILURE_REASONS} filter={filter} />
        <Field label="App" name="app" offers={appNames} filter={filter} />
        <Field label="Host" name="host" hint="receiver.example" filter={filter} />
        <Field label="Status" name="status" hint="503 or 5xx" offers={STATUSES} filter={filter} />
        <Field label="Since" name="since" hint="24h or a time" offers={SPANS} filter={filter} />
        <Field label="Until" name="until" hint="1h or a time" offers={SPANS} filter={filter} />
        <div class="row">
          <button
            type="button"
            class="more"
            aria-expanded={open.value}
            onClick={() => {
              open.value = !open.value;
            }}
          >
            {open.value ? 'Fewer filters' : 'More filters'}
          </button>
          <button type="button" disabled={!isNarrowed(filter)} onClick={() => go(withParameters(CLEARED))}>
            Clear
          </button>
        </div>
      </div>
      <p id={troubleId} class="problem" role="alert" hidden={trouble === undefined}>
        {trouble}
      </p>
    </form>
  );
}

interface InputProps {
  readonly label: string;
  readonly name: FilterName;
  readonly filter: Filter;
}

function Choice({ label, name, among, filter }: InputProps & { readonly among: readonly string[] }) {
  const chosen = filter[name] ?? '';
  const known = chosen === '' || among.includes(chosen) ? among : [...among, chosen];
  return (
    <label>
      {label}
      <select
        value={chosen}
        onChange={event => go(withParameters(changesBy(name, event.currentTarget.value)))}
      >
        <option value="">any</option>
        {known.map(each => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

interface FieldProps extends InputProps {
  readonly hint?: string;
  readonly offers?: readonly string[];
}

function Field({ label, name, filter, hint, offers = [] }: FieldProps) {
  const offersId = useId();
  const applied = useRef(false);
  // What is typed and not applied yet outlives that the list is drawn again below it.
  const draft = useSignal<string | undefined>(undefined);
  const text = filter[name] ?? '';
  return (
    <label class={text === '' ? 'minor' : ''}>
      {label}
      <input
        type="text"
        list={offers.length > 0 ? offersId : undefined}
        placeholder={hint}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        value={draft.value ?? text}
        onInput={event => {
          draft.value = event.currentTarget.value;
        }}
        onChange={event => {
          draft.value = undefined;
          // Corrections while one stays in the field are not steps that anybody would want to go back.
          go(withParameters(changesBy(name, event.currentTarget.value)), { replace: applied.current });
          applied.current = true;
        }}
        onFocus={() => {
          applied.current = false;
        }}
      />
      {offers.length > 0 && (
        <datalist id={offersId}>
          {offers.map(each => (
            <option key={each}>{each}</option>
          ))}
        </datalist>
      )}
    </label>
  );
}
