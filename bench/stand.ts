/**
 * The processes of the bench: an app, the servers that are compared, a receiver and the load generator, each
 * one on its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from './child.ts';
import { openGround } from './ground.ts';

/** What is compared. The first is the floor, the second the peer. */
export const SUBJECTS = [
  'node:http',
  'fast-proxy',
  'afterword',
  'afterword, logging calls',
  'afterword, with webhook',
] as const;
export type Subject = (typeof SUBJECTS)[number];

export const PEER: Subject = 'fast-proxy';
export const WITHOUT_WEBHOOK: Subject = 'afterword';
export const WITH_WEBHOOK: Subject = 'afterword, with webhook';

export interface Stand {
  /** Removed in the end; the servers keep their data in it. */
  readonly dir: string;
  readonly servers: Readonly<Record<Subject, Server>>;
  readonly receiver: Child;
  readonly load: Child;
  readonly token: string;
  /** Where the receiver takes deliveries. */
  readonly target: string;
  close(): Promise<void>;
}

export interface Server {
  /** Where it takes calls. */
  readonly port: number;
  cpuMicros(): Promise<number>;
  /** Resolves once nothing is left to do for the calls that it has answered. */
  settled(): Promise<void>;
}

export async function openStand(interrupted: AbortSignal): Promise<Stand> {
  const ground = await openGround(interrupted);
  try {
    const app = await ground.script('app', 1);
    const appPort = app.ports[0]!;
    const [floor, peer, load, receiver, plain, logging, webhook] = await Promise.all([
      ground.script('app', 1),
      ground.script('peers', 1, `http://127.0.0.1:${appPort}`),
      ground.script('load', 0),
      ground.script('receiver', 1),
      ground.afterword('plain', { appPort }),
      ground.afterword('logging', { appPort, logLevel: 'info' }),
      ground.afterword('webhook', { appPort }),
    ]);
    return {
      dir: ground.dir,
      servers: {
        'node:http': plainServer(floor),
        'fast-proxy': plainServer(peer),
        afterword: afterwordServer(plain),
        'afterword, logging calls': afterwordServer(logging),
        'afterword, with webhook': afterwordServer(webhook),
      },
      receiver,
      load,
      token: await ground.token(),
      target: `http://127.0.0.1:${receiver.ports[0]}/hook`,
      close: () => ground.close(),
    };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

function plainServer(child: Child): Server {
  return { port: child.ports[0]!, cpuMicros: () => child.ask<number>('cpu'), settled: async () => {} };
}

/** It opens its admin listener first. */
function afterwordServer(child: Child): Server {
  const [admin, calls] = child.ports;
  return {
    port: calls!,
    cpuMicros: () => child.ask<number>('cpu'),
    async settled() {
      const held = async (): Promise<string | undefined> => {
        const metrics = await fetch(`http://127.0.0.1:${admin}/metrics`);
        return /^afterword_deliveries_held (\d+)$/m.exec(await metrics.text())?.[1];
      };
      while ((await held()) !== '0') await sleep(20);
    },
  };
}
