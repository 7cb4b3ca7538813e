/**
 * The two ends of a way between processes, here in one: what is sent is cloned as on its way to another
 * process, and comes later, in order.
 */
import { deserialize, serialize } from 'node:v8';
import type { Port } from '../../src/port.ts';

export interface PortPair<Out, In> {
  readonly here: Port<Out, In>;
  readonly there: Port<In, Out>;
  /** Nothing that is sent from now on arrives: one of the two is gone. */
  readonly cut: () => void;
}

export function portPair<Out, In>(): PortPair<Out, In> {
  const line = { cut: false };
  const [forth, back] = [oneWay<Out>(line), oneWay<In>(line)];
  return {
    here: { send: forth.send, listen: back.listen },
    there: { send: back.send, listen: forth.listen },
    cut: () => void (line.cut = true),
  };
}

function oneWay<T>(line: { readonly cut: boolean }) {
  let listener: ((message: T) => void) | undefined;
  return {
    send: (message: T): void => {
      const bytes = serialize(message);
      setImmediate(() => {
        if (!line.cut) listener?.(deserialize(bytes) as T);
      });
    },
    listen: (heard: (message: T) => void) => void (listener = heard),
  };
}
