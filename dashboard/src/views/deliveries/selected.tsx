/**
 * Redelivers what is selected: asks first, then sends one request for each, a few at a time, and tells how they
 * went. It goes on where the dialog is closed meanwhile.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { post, Refused } from '../../api/client.ts';
import { emptyReport, type Outcome, type Report, redeliverEach, reportText, seenOf } from '../../bulk.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { notify } from '../../ui/notices.tsx';
import { RunId } from './run-id.tsx';

export interface RedeliverSelectedProps {
  readonly runIds: readonly string[];
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export function RedeliverSelected({ runIds, onDone, onClose }: RedeliverSelectedProps) {
  const report = useSignal<Report | undefined>(undefined);
  const ended = useSignal(false);
  const closed = useRef(false);
  useEffect(
    () => () => {
      closed.current = true;
    },
    [],
  );

  async function start(): Promise<void> {
    report.value = emptyReport(runIds.length);
    const whole = await redeliverEach(runIds, {
      redeliver,
      onProgress: sofar => {
        report.value = sofar;
      },
    });
    ended.value = true;
    if (closed.current) notify(reportText(whole), whole.failures.length > 0 ? 'problem' : 'done');
    onDone();
  }

  const many = runIds.length === 1 ? '1 delivery' : `${runIds.length} deliveries`;
  return (
    <Dialog title={`Redeliver ${many}`} onClose={onClose}>
      {report.value === undefined ? (
        <p>
          {runIds.length === 1 ? 'It gets' : 'Each gets'} a new round of up to three attempts at its own
          target. What is pending already is skipped.
        </p>
      ) : (
        <ReportSoFar report={report.value} ended={ended.value} />
      )}
      <form method="dialog" class="row ends">
        <button type="submit">{report.value === undefined ? 'Cancel' : 'Close'}</button>
        {report.value === undefined && (
          <button type="button" class="primary" onClick={() => void start()}>
            Redeliver
          </button>
        )}
      </form>
    </Dialog>
  );
}

function ReportSoFar({ report, ended }: { readonly report: Report; readonly ended: boolean }) {
  return (
    <>
      <progress max={report.total} value={seenOf(report)} aria-label="Redelivered" />
      <output>{ended ? reportText(report) : 'Redelivering…'}</output>
      {report.failures.length > 0 && (
        <ul class="failures">
          {report.failures.map(({ runId, why }) => (
            <li key={runId}>
              <RunId id={runId} href={`/deliveries/${runId}`} /> {why}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

async function redeliver(runId: string): Promise<Outcome> {
  try {
    await post(`deliveries/${runId}/redeliver`, {});
    return 'redelivered';
  } catch (error) {
    if (error instanceof Refused && error.code === 'delivery_pending') return 'skipped';
    return { failed: error instanceof Refused ? error.message : 'The service did not answer' };
  }
}
