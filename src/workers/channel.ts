/**
 * The one channel between the primary and a worker, shared by several ports: each message goes with the name
 * of its port.
 */
import type { Port } from '../port.ts';

/** An end of the channel, as Node gives it. */
export interface ChannelEnd {
  send(message: unknown): void;
  listen(listener: (message: unknown) => void): void;
}

/** What each port is for: the life of the worker, the store, places in the processes of apps. */
export type PortName = 'life' | 'store' | 'leases';

export interface Channel {
  port<Out, In>(name: PortName): Port<Out, In>;
}

type Envelope = readonly [port: PortName, message: unknown];

export function createChannel(end: ChannelEnd): Channel {
  const listeners = new Map<PortName, (message: unknown) => void>();
  end.listen(envelope => {
    const [name, message] = envelope as Envelope;
    listeners.get(name)?.(message);
  });
  return {
    port: <Out, In>(name: PortName): Port<Out, In> => ({
      send: message => end.send([name, message] satisfies Envelope),
      listen: listener => void listeners.set(name, listener as (message: unknown) => void),
    }),
  };
}
