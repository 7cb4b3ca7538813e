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
  /** The target of every webhook; undefined: the calls have none. */
  readonly target: string | undefined;
}

/** What a caller has got to its end. */
export interface WholeAnswer {
  readonly runId: string;
  readonly app: 'custom' | 'cortex';
  readonly status: number;
  /** Of an error of the service. */
  readonly code?: string;
  /** SHA-256 of the body. */
  readonly digest: string;
  /** When it was complete, in milliseconds since the epoch. */
  readonly at: number;
}

/** A call without a whole answer, and why. */
export interface Failure {
  readonly failed: string;
}

export interface LoadOptions {
  readonly token: string;
  readonly target?: string;
  /** Calls at once. */
  readonly lanes?: number;
}

export interface Load {
  /** Whole answers so far. */
  readonly answers: readonly WholeAnswer[];
  /** Calls so far that broke off, or that nobody took, while they were aimed at a service. */
  readonly failures: readonly string[];
  aim(port: number | undefined): void;
  /** Lets the calls under way end. */
  stop(): Promise<readonly WholeAnswer[]>;
}

/** It does not outlive the test. */
export function startLoad({ token, target, lanes = 12 }: LoadOptions): Load {
  const answers: WholeAnswer[] = [];
  const failures: string[] = [];
  const child = fork(SCRIPT, [String(lanes)], { execPath: process.execPath, execArgv: [] });
  child.on('message', (message: WholeAnswer | Failure) => {
    if ('failed' in message) failures.push(message.failed);
    else answers.push(message);
  });
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
    failures,
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
