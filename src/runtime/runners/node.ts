/**
 * The program that serves the functions of a TypeScript or JavaScript entry: imports AFTERWORD_ENTRY, then
 * listens on AFTERWORD_SOCKET for `POST /<function>`. On SIGTERM it lets the running calls end and exits 0.
 *
 * What throws outside a call, be it the entry while it is imported, ends the process as Node has it: the
 * stack on standard error, exit code 1.
 */
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { createCallHandler } from './node/call.ts';
import { functionsOf } from './node/functions.ts';
import { captureOutput } from './node/output.ts';

/** Twice what the gateway takes from a caller, since it adds some. */
const MAX_HEADER_BYTES = 64 * 1024;

async function serve(socket: string, entry: string): Promise<void> {
  const output = captureOutput([process.stdout, process.stderr]);
  const functions = functionsOf((await import(pathToFileURL(entry).href)) as object);
  if (functions.size === 0) throw new Error(`${entry} exports no function`);

  const handle = createCallHandler({ functions, output });
  const running = new Set<Promise<unknown>>();
  // Whoever calls decides how long a request may take to arrive and how long a connection is kept.
  const server = createServer({
    requestTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
  server.on('request', (req, res) => {
    const closed = new Promise(resolve => void res.once('close', resolve));
    const call = Promise.all([handle(req, res), closed]);
    running.add(call);
    void call.finally(() => running.delete(call));
  });

  const stop = async (): Promise<never> => {
    // Nobody can connect any more. `server.close()` would cut off answers that are still being written.
    rmSync(socket, { force: true });
    while (running.size > 0) await Promise.allSettled(running);
    process.exit(0);
  };
  process.once('SIGTERM', () => void stop());
  rmSync(socket, { force: true }); // left behind by a process that was killed
  server.listen(socket);
}

const { AFTERWORD_SOCKET: socket, AFTERWORD_ENTRY: entry } = process.env;
if (socket === undefined || entry === undefined)
  throw new Error('AFTERWORD_SOCKET and AFTERWORD_ENTRY are needed');
await serve(socket, entry);
