/**
 * Loaded into every process of the bench before its own code: tells the bench which ports the process listens
 * on, answers what it asks (the CPU time used, and what the process adds), and ends it when the bench is gone.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { AddressInfo, Server } from 'node:net';

export interface Question {
  readonly id: number;
  readonly name: string;
  readonly argument: unknown;
}

export type Message =
  | { readonly port: number }
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly fault: string };

type Answerer = (argument: never) => unknown;

const answerers = new Map<string, PromiseWithResolvers<Answerer>>();

/** Lets the bench ask for `name`; the answer may be a promise. */
export function onAsk(name: string, answer: Answerer): void {
  answererOf(name).resolve(answer);
}

/** A question may come before the process is so far that it can answer it. */
function answererOf(name: string): PromiseWithResolvers<Answerer> {
  const known = answerers.get(name) ?? Promise.withResolvers<Answerer>();
  answerers.set(name, known);
  return known;
}

/** Of all threads. */
function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

async function reply({ id, name, argument }: Question): Promise<void> {
  try {
    const answer = await answererOf(name).promise;
    tell({ id, answer: await answer(argument as never) });
  } catch (error) {
    tell({ id, fault: error instanceof Error ? error.message : String(error) });
  }
}

function tell(message: Message): void {
  process.send?.(message);
}

onAsk('cpu', cpuMicros);
subscribe('tracing:net.server.listen:asyncEnd', message => {
  const { server } = message as { server: Server };
  tell({ port: (server.address() as AddressInfo).port });
});
process.on('message', question => void reply(question as Question));
process.on('disconnect', () => process.exit());
