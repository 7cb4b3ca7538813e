/**
 * Redelivery of many: one by one, a few at a time, with a report of how each went, or all that a filter finds by
 * a job of the service, which is followed to its end.
 */
import type { Counted, Job } from './api/shapes.ts';
import { grouped } from './format.ts';

/** How one redelivery went: `skipped` is under way already. */
export type Outcome = 'redelivered' | 'skipped' | { readonly failed: string };

export interface Report {
  readonly total: number;
  readonly redelivered: number;
  readonly skipped: number;
  readonly failures: readonly { readonly runId: string; readonly why: string }[];
}

export interface BulkOptions {
  readonly redeliver: (runId: string) => Promise<Outcome>;
  readonly onProgress: (report: Report) => void;
}

const AT_ONCE = 4;

export function emptyReport(total: number): Report {
  return { total, redelivered: 0, skipped: 0, failures: [] };
}

export async function redeliverEach(
  runIds: readonly string[],
  { redeliver, onProgress }: BulkOptions,
): Promise<Report> {
  const waiting = runIds.values();
  let report = emptyReport(runIds.length);
  const work = async (): Promise<void> => {
    for (const runId of waiting) {
      const outcome = await redeliver(runId);
      report = withOutcome(report, runId, outcome); // only now: others have added to it meanwhile
      onProgress(report);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return report;
}

function withOutcome(report: Report, runId: string, outcome: Outcome): Report {
  if (outcome === 'redelivered') return { ...report, redelivered: report.redelivered + 1 };
  if (outcome === 'skipped') return { ...report, skipped: report.skipped + 1 };
  return { ...report, failures: [...report.failures, { runId, why: outcome.failed }] };
}

export function seenOf({ redelivered, skipped, failures }: Report): number {
  return redelivered + skipped + failures.length;
}

export function reportText({ redelivered, skipped, failures }: Report): string {
  const parts = [
    `${grouped(redelivered)} redelivered`,
    skipped > 0 && `${grouped(skipped)} skipped, under way already`,
    failures.length > 0 && `${grouped(failures.length)} refused`,
  ];
  return parts.filter(Boolean).join(' · ');
}

export function countedText({ matching, exact }: Counted): string {
  return `${exact ? '' : 'at least '}${grouped(matching)} ${matching === 1 ? 'delivery' : 'deliveries'}`;
}

/** What was passed over was under way already. */
export function jobText({ state, total, seen, redelivered }: Job): string {
  const passed = seen - redelivered;
  return state === 'running'
    ? `Redelivering: ${grouped(seen)} of ${grouped(Math.max(total, seen))}`
    : `${grouped(redelivered)} redelivered${passed > 0 ? ` · ${grouped(passed)} skipped, under way already` : ''}`;
}
