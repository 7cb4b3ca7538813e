/** The operations on what has been counted, as part of what the two threads say to each other. */
import type { FailingHost, HostCounts, MinuteCounts, Span, StatsWindow } from '../../stats.ts';
import type { Numbered } from '../once.ts';

export interface StatsOperations {
  addCounts: {
    args: Numbered & { readonly minutes: readonly MinuteCounts[]; readonly hosts: readonly HostCounts[] };
    result: void;
  };
  spans: { args: StatsWindow; result: Span[] };
  failingHosts: {
    args: { readonly window: Omit<StatsWindow, 'step'>; readonly limit: number };
    result: FailingHost[];
  };
  pruneCounts: { args: { readonly before: number }; result: void };
}
