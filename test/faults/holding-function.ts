/** A function that runs until nobody wants its result any more; it leaves a file when it begins and when it ends. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export async function hold(
  { folder }: { folder: string },
  { runId, signal }: { runId: string; signal: AbortSignal },
) {
  await writeFile(join(folder, `${runId}.begun`), '');
  if (!signal.aborted) await once(signal, 'abort');
  await writeFile(join(folder, `${runId}.aborted`), '');
}
