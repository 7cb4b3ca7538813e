/**
 * Redelivers all that the filter finds: counts first, asks, and has the service do it. How far that has come is
 * told in the dialog and, where that is closed, above the list.
 */
import { useSignal } from '@preact/signals';
import { post } from '../../api/client.ts';
import type { Counted, Job } from '../../api/shapes.ts';
import { countedText, jobText } from '../../bulk.ts';
import type { Filter } from '../../filters.ts';
import { useResource } from '../../resource.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Waiting } from '../../ui/parts.tsx';
import { job, startJob } from './job.ts';

export function JobStrip() {
  const found = job.value;
  if (found?.state !== 'running') return null;
  return (
    <section class="panel job" aria-label="Redelivery in bulk">
      <JobProgress of={found} />
    </section>
  );
}

function JobProgress({ of }: { readonly of: Job }) {
  const done = of.state === 'done';
  const total = Math.max(of.total, of.seen, 1);
  return (
    <>
      <progress max={total} value={done ? total : of.seen} aria-label="Redelivered" />
      <p>{jobText(of)}</p>
    </>
  );
}

export interface RedeliverMatchingProps {
  readonly filter: Filter;
  readonly onClose: () => void;
}

export function RedeliverMatching({ filter, onClose }: RedeliverMatchingProps) {
  const { state, reload } = useResource({
    key: 'count',
    load: () => post<Counted>('deliveries/redeliver', { filter, dryRun: true }),
  });
  const { started, asking, trouble, start } = useStart(filter);
  const counted = state.value.data;
  return (
    <Dialog title="Redeliver all that match" onClose={onClose}>
      <FilterWords filter={filter} />
      <Waiting of={state.value} onRetry={reload} />
      {started ? job.value !== undefined && <JobProgress of={job.value} /> : <Found counted={counted} />}
      <p class="problem" role="alert" hidden={trouble === undefined}>
        {trouble}
      </p>
      <form method="dialog" class="row ends">
        <button type="submit">{started ? 'Close' : 'Cancel'}</button>
        {!started && (
          <button
            type="button"
            class="primary"
            disabled={counted === undefined || counted.matching === 0 || asking}
            onClick={() => void start()}
          >
            Redeliver {counted !== undefined && countedText(counted)}
          </button>
        )}
      </form>
    </Dialog>
  );
}

function useStart(filter: Filter) {
  const started = useSignal(false);
  const asking = useSignal(false);
  const trouble = useSignal<string | undefined>(undefined);

  async function start(): Promise<void> {
    asking.value = true;
    try {
      await startJob(filter);
      started.value = true;
    } catch (error) {
      trouble.value = (error as Error).message;
    }
    asking.value = false;
  }

  return { started: started.value, asking: asking.value, trouble: trouble.value, start };
}

function Found({ counted }: { readonly counted: Counted | undefined }) {
  if (counted === undefined) return null;
  return (
    <output>
      The filter finds {countedText(counted)}. Each that has ended gets a new round of up to three attempts at
      its own target; what is pending is skipped.
    </output>
  );
}

function FilterWords({ filter }: { readonly filter: Filter }) {
  return (
    <p class="row">
      {Object.entries(filter).map(([name, text]) => (
        <code key={name} class="word">
          {name}={text}
        </code>
      ))}
    </p>
  );
}
