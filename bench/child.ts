/**
 * One process of the bench: started with the probe in it, asked over its channel, killed by its own id.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Message } from './probe.ts';

export interface ChildOptions {
  /** The script to run. */
  readonly entry: string;
  readonly args?: readonly string[];
  /** Added to the environment of the bench. */
  readonly env?: Readonly<Record<string, string>>;
  /** How many ports it is going to listen on. */
  readonly listeners: number;
  /** The file that takes what it prints. */
  readonly output: string;
}

export interface Child {
  /** Resolves once it listens on all its ports; rejects when it ends before. */
  readonly listening: Promise<void>;
  /** Those it listens on, in the order in which it began to. */
  readonly ports: readonly number[];
  ask<Answer>(name: string, argument?: unknown): Promise<Answer>;
  stop(): Promise<void>;
}

const PROBE = join(import.meta.dirname, 'probe.ts');

export function startChild({ entry, args = [], env, listeners, output }: ChildOptions): Child {
  const file = openSync(output, 'a');
  const child = fork(entry, args, {
    execArgv: ['--import', PROBE],
    env: { ...process.env, ...env },
    stdio: ['ignore', file, file, 'ipc'],
  });
  closeSync(file);
  const ports: number[] = [];
  const listening = Promise.withResolvers<void>();
  listening.promise.catch(() => {}); // told to whoever waits for it
  if (listeners === 0) listening.resolve();
  const asked = new Map<number, PromiseWithResolvers<unknown>>();
  let serial = 0;
  let stopped = false;

  child.on('message', (message: Message) => {
    if ('port' in message) {
      ports.push(message.port);
      if (ports.length === listeners) listening.resolve();
      return;
    }
    const question = asked.get(message.id)!;
    asked.delete(message.id);
    if ('fault' in message) question.reject(new Error(message.fault));
    else question.resolve(message.answer);
  });
  child.once('exit', () => {
    const error = new Error(
      stopped ? 'stopped' : `${entry} ended:\n${readFileSync(output, 'utf8').slice(-2_000)}`,
    );
    listening.reject(error);
    for (const { reject } of asked.values()) reject(error);
  });

  return {
    listening: listening.promise,
    ports,
    ask<Answer>(name: string, argument?: unknown) {
      const answer = Promise.withResolvers<unknown>();
      const id = ++serial;
      asked.set(id, answer);
      child.send({ id, name, argument });
      return answer.promise as Promise<Answer>;
    },
    async stop() {
      stopped = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
