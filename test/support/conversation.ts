/**
 * One connection of a caller, byte by byte: sends when told, keeps what comes, and lets a test wait for it.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface Conversation {
  readonly socket: Socket;
  /** All that has come so far; one character a byte. */
  readonly text: string;
  readonly bytes: Buffer;
  readonly closed: boolean;
  /** The connection did not end in an orderly way. */
  readonly reset: boolean;
  send(data: string | Uint8Array): void;
  /** Waits until the text has this in it, at or after `from`; fails when the connection closes without it. */
  until(part: string | RegExp, from?: number): Promise<string>;
  /** Waits for the end of the connection and gives all that came. */
  end(): Promise<string>;
  /** From here on counts what comes without keeping it; gives the number at the end of the connection. */
  tally(): Promise<number>;
  /** Hangs up. */
  close(): void;
}

export async function converse(port: number): Promise<Conversation> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const chunks: Buffer[] = [];
  let text = '';
  let closed = false;
  let reset = false;
  let wake = Promise.withResolvers<void>();
  const changed = (): void => {
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };
  const keep = (chunk: Buffer): void => {
    chunks.push(chunk);
    text += chunk.toString('latin1');
    changed();
  };
  socket.on('data', keep);
  socket.on('error', () => {
    reset = true;
  });
  const ended = new Promise<void>(resolve => {
    socket.on('close', () => {
      closed = true;
      changed();
      resolve();
    });
  });

  const has = (part: string | RegExp, from: number): boolean =>
    typeof part === 'string' ? text.includes(part, from) : part.test(text.slice(from));

  return {
    socket,
    get text() {
      return text;
    },
    get bytes() {
      return Buffer.concat(chunks);
    },
    get closed() {
      return closed;
    },
    get reset() {
      return reset;
    },
    send: data => {
      socket.write(data);
    },
    async until(part, from = 0) {
      while (!has(part, from)) {
        if (closed)
          throw new Error(`closed without ${String(part)} after ${JSON.stringify(text.slice(0, 500))}`);
        await wake.promise;
      }
      return text;
    },
    async end() {
      await ended;
      return text;
    },
    async tally() {
      let count = 0;
      socket.off('data', keep).on('data', chunk => (count += chunk.length));
      socket.resume();
      await ended;
      return count;
    },
    close: () => socket.destroy(),
  };
}
