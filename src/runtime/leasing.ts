/**
 * Lets calls that another process takes have their places in the processes of apps that run here: what the two
 * say to each other, and this side of it. The other side is in remote-host.ts.
 */
import type { AppConfig } from '../config/config.ts';
import { Problem, type ProblemCode } from '../errors.ts';
import type { Port } from '../port.ts';
import type { HostedState } from './app-state.ts';
import type { Door } from './door.ts';
import type { Host } from './host.ts';
import type { HostedLease } from './hosted-app.ts';

/** `id` names a lease, from the wish for it to its end. */
export type LeaseRequest =
  | { readonly type: 'lease'; readonly id: number; readonly projectId: string; readonly app: string }
  | { readonly type: 'unwanted' | 'done' | 'timed_out' | 'crashed'; readonly id: number }
  /** How do the apps stand? `id` names the question. */
  | { readonly type: 'states'; readonly id: number };

export type LeaseReply =
  | { readonly type: 'granted'; readonly id: number; readonly door: Door }
  | { readonly type: 'refused'; readonly id: number; readonly problem: ProblemParts }
  /** Whether the process of the lease has ended. */
  | { readonly type: 'crashed'; readonly id: number; readonly crashed: boolean }
  | { readonly type: 'states'; readonly id: number; readonly states: readonly HostedState[] };

/** A problem as it travels. */
export interface ProblemParts {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly headers: readonly string[];
}

export interface LeasingOptions {
  readonly host: Pick<Host, 'lease' | 'states'>;
  readonly port: Port<LeaseReply, LeaseRequest>;
  readonly appOf: (projectId: string, name: string) => AppConfig;
}

export interface Leasing {
  /** The other process is gone: its places are free, and its waiting calls want none. */
  end(): void;
}

interface Entry {
  wanted: boolean;
  lease?: HostedLease;
}

export function serveLeases({ host, port, appOf }: LeasingOptions): Leasing {
  const entries = new Map<number, Entry>();

  async function lease(id: number, app: AppConfig): Promise<void> {
    const entry: Entry = { wanted: true };
    entries.set(id, entry);
    try {
      const granted = await host.lease(app, () => entry.wanted);
      entry.lease = granted;
      if (entries.has(id)) port.send({ type: 'granted', id, door: granted.door });
      else granted.done();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      entries.delete(id);
      const { code, message: detail, headers } = error;
      port.send({ type: 'refused', id, problem: { code, detail, headers } });
    }
  }

  async function tellCrash(id: number): Promise<void> {
    const crashed = (await entries.get(id)?.lease?.crashed()) ?? false;
    port.send({ type: 'crashed', id, crashed });
  }

  function end(id: number, entry: Entry): void {
    entries.delete(id);
    entry.wanted = false;
    entry.lease?.done();
  }

  port.listen(request => {
    const { id } = request;
    if (request.type === 'lease') {
      void lease(id, appOf(request.projectId, request.app));
      return;
    }
    if (request.type === 'states') {
      port.send({ type: 'states', id, states: host.states() });
      return;
    }
    const entry = entries.get(id);
    if (request.type === 'crashed') void tellCrash(id);
    else if (entry === undefined) return;
    else if (request.type === 'unwanted') entry.wanted = false;
    else if (request.type === 'timed_out') entry.lease?.timedOut();
    else end(id, entry);
  });

  return {
    end() {
      for (const [id, entry] of entries) end(id, entry);
    },
  };
}
