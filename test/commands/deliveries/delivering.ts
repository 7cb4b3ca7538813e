/**
 * A real service for the commands of deliveries, with an app that answers JSON and a receiver that answers as it
 * is told to.
 */
import { onTestFinished } from 'vitest';
import { type Inbox, openInbox } from '../../support/inbox.ts';
import { startService, type TestService, type TestServiceOptions } from '../../support/service.ts';
import { type AppHandler, openStage, type Stage } from '../../support/stage.ts';
import { until } from '../../support/waiting.ts';
import { type Running, type RunOptions, run, start } from '../run.ts';

/** What no double holds: whoever parses it and writes it again writes something else. */
export const ANSWER = '{"id": 12345678901234567890, "z":1.10,"a":"ä"}';

export interface Ground {
  readonly service: TestService;
  readonly inbox: Inbox;
  /** What the receiver answers from now on. */
  readonly answerWith: (status: number) => void;
  readonly command: (argv: readonly string[], options?: RunOptions) => ReturnType<typeof run>;
  /** The same, while it runs; it is stopped with the test. */
  readonly begin: (argv: readonly string[], options?: RunOptions) => Running;
  /** Makes a delivery to the receiver, or elsewhere, and gives its run id. */
  readonly deliver: (call?: { readonly app?: string; readonly target?: string }) => Promise<string>;
  /** Waits until it stands so, and gives all that is known of it. */
  readonly settled: (runId: string, state?: string, round?: number) => Promise<Record<string, unknown>>;
  readonly close: () => Promise<void>;
}

export async function openGround(options: Partial<TestServiceOptions> = {}): Promise<Ground> {
  let status = 200;
  const stage: Stage<AppHandler> = await openStage();
  const inbox = await openInbox(() => status);
  const app = { runtime: 'custom', url: stage.url } as const;
  const service = await startService({ apps: { web: app, other: app }, ...options });
  const name = stage.play((_, res) => res.setHeader('Content-Type', 'application/json').end(ANSWER));
  const env = { AFTERWORD_URL: service.base, AFTERWORD_TOKEN: service.token };

  const command: Ground['command'] = (argv, given = {}) =>
    run(['deliveries', ...argv], { ...given, env: { ...env, ...given.env } });
  return {
    service,
    inbox,
    answerWith: next => void (status = next),
    command,
    begin(argv, given = {}) {
      const running = start(['deliveries', ...argv], { ...given, env: { ...env, ...given.env } });
      onTestFinished(async () => {
        running.stop();
        await running.exit;
      });
      return running;
    },
    async deliver({ app = 'web', target = inbox.url } = {}) {
      const headers = { Authorization: `Bearer ${service.token}` };
      const answer = await fetch(`${service.base}${service.path(`${app}/${name}`, target)}`, { headers });
      await answer.text();
      return answer.headers.get('x-request-id')!;
    },
    async settled(runId, state, round = 1) {
      let told: Record<string, unknown> = {};
      await until(async () => {
        told = JSON.parse((await command(['show', runId])).stdout) as Record<string, unknown>;
        return (
          told['round'] === round &&
          (state === undefined ? told['state'] !== 'pending' : told['state'] === state)
        );
      });
      return told;
    },
    async close() {
      await service.stop();
      await stage.close();
      await inbox.close();
    },
  };
}

export const UNKNOWN = '01a1dd95-24aa-770e-a088-7159dba3d142';

export function objectsIn(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line) as Record<string, unknown>);
}

export const idsIn = (text: string): string[] => objectsIn(text).map(each => String(each['run_id']));
