/**
 * Asks whether a run is to be cancelled, and tells how that went.
 */
import { useSignal } from '@preact/signals';
import { post } from '../../api/client.ts';
import type { Run } from '../../api/shapes.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { notify } from '../../ui/notices.tsx';

export interface CancelRunProps {
  readonly run: Run;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export function CancelRun({ run, onDone, onClose }: CancelRunProps) {
  const asking = useSignal(false);

  async function cancel(): Promise<void> {
    asking.value = true;
    try {
      const { state } = await post<Run>(`runs/${run.run_id}/cancel`);
      notify(state === 'cancelled' ? 'The run is cancelled' : 'The run is being cancelled');
    } catch (error) {
      notify(`The run could not be cancelled: ${(error as Error).message}`, 'problem');
    }
    onDone();
    onClose();
  }

  return (
    <Dialog title="Cancel this run" onClose={onClose}>
      <p>
        <code>{run.run_id}</code> of {run.app}
      </p>
      <p>
        {run.state === 'queued'
          ? 'It has not begun, and will not.'
          : 'Its call is broken off; what the app has done by then stays done.'}{' '}
        Its receiver, where it has one, is told that it was cancelled.
      </p>
      <form method="dialog" class="row ends">
        <button type="submit">Keep it</button>
        <button type="button" class="danger" disabled={asking.value} onClick={() => void cancel()}>
          Cancel the run
        </button>
      </form>
    </Dialog>
  );
}
