/**
 * The redelivery in bulk that was started last: the service does it, with the page or without; as long as the page
 * is open it is followed, whatever is looked at.
 */
import { signal } from '@preact/signals';
import { get, post, Refused } from '../../api/client.ts';
import type { Job, JobAccepted } from '../../api/shapes.ts';
import { jobText } from '../../bulk.ts';
import type { Filter } from '../../filters.ts';
import { notify } from '../../ui/notices.tsx';

const ASK_MS = 1_000;

export const job = signal<Job | undefined>(undefined);

const pause = (ms: number): Promise<void> => new Promise(resolve => void setTimeout(resolve, ms));

export async function startJob(filter: Filter): Promise<void> {
  const { job_id, total } = await post<JobAccepted>('deliveries/redeliver', { filter });
  const created_at = new Date().toISOString();
  job.value = { job_id, state: 'running', total, seen: 0, redelivered: 0, created_at };
  void follow(job_id);
}

/** Until it is done, nobody knows it any more, or another has been started. */
async function follow(jobId: string): Promise<void> {
  while (job.value?.job_id === jobId && job.value.state === 'running') {
    await pause(ASK_MS);
    try {
      const found = await get<Job>(`deliveries/redeliver/${jobId}`);
      if (job.value?.job_id !== jobId) return;
      job.value = found;
      if (found.state === 'done') notify(jobText(found));
    } catch (error) {
      if (!(error instanceof Refused) || error.status >= 500) continue; // it may come back
      job.value = undefined;
      notify(error.message, 'problem');
    }
  }
}
