/**
 * Load from a process of its own, so that neither the service nor the test shares its event loop.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../faults/calling.ts', import.meta.url));

export interface Orders {
  /** Where the service listens; undefined while there is none. */
  readonly port: number | undefined;
  readonly token: string;
  /** The target of every webhook. */
  readonly target: string;
}

/** What a caller has got to its end. */
export interface WholeAnswer {
  readonly runId: string;
  readonly app: 'custom' | 'cortex';
  readonly status: number;
  /** SHA-256 of the body. */
  readonly digest: string;
}

export interface Load {
  /** Whole answers so far. */
  readonly answers: readonly WholeAnswer[];
  aim(port: number | undefined): void;
  /** Lets the calls under way end. */
  stop(): Promise<readonly WholeAnswer[]>;
}

/** It does not outlive the test. */
export function startLoad({ token, target }: Omit<Orders, 'port'>): Load {
  const answers: WholeAnswer[] = [];
  const child = fork(SCRIPT, { execPath: process.execPath, execArgv: [] });
  child.on('message', answer => answers.push(answer as WholeAnswer));
  const ended = once(child, 'exit');
  // One that has ended by itself calls nobody: what follows from that would be blamed on the service.
  const mustLive = (): void => {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`the load ended early, with ${child.exitCode ?? child.signalCode}`);
    }
  };
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    answers,
    aim(port) {
      mustLive();
      child.send({ port, token, target } satisfies Orders);
    },
    async stop() {
      child.send('stop');
      const [code] = await ended;
      if (code !== 0) throw new Error(`the load ended with ${code}`);
      return answers;
    },
  };
}
