/**
 * One app for many tests: each puts its own handler on, under a path of its own.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { openApp, openRawApp, type TestApp } from './app.ts';

export interface Stage<Handler> {
  readonly url: string;
  /** Gives the name under which the handler answers: `/<name>`, or the function of that name. */
  play(handler: Handler): string;
  close(): Promise<void>;
}

/** May be asynchronous; nobody waits for it. */
export type AppHandler = (req: IncomingMessage, res: ServerResponse) => unknown;

export async function openStage(): Promise<Stage<AppHandler>> {
  const handlers = new Map<string, AppHandler>();
  const app = await openApp((req, res) => {
    const handler = handlers.get(nameIn(req.url!));
    if (handler === undefined) res.writeHead(599).end('nothing is played here');
    else handler(req, res);
  });
  return stageOn(app, handlers);
}

/** For answers that node:http would never give; `head` is the request's, as on the wire. */
export type RawHandler = (socket: Socket, head: string) => void;

export async function openRawStage(): Promise<Stage<RawHandler>> {
  const handlers = new Map<string, RawHandler>();
  const app = await openRawApp(socket => {
    let head = '';
    const read = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', read);
      handlers.get(nameIn(head.split(' ', 2)[1]!))?.(socket, head);
    };
    socket.on('data', read);
  });
  return stageOn(app, handlers);
}

function stageOn<Handler>(app: TestApp, handlers: Map<string, Handler>): Stage<Handler> {
  return {
    url: app.url,
    play(handler) {
      const name = `s${handlers.size + 1}`;
      handlers.set(name, handler);
      return name;
    },
    close: () => app.close(),
  };
}

const nameIn = (path: string): string => /\/(s\d+)(?:[/?]|$)/.exec(path)?.[1] ?? '';
