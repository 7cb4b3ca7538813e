/**
 * A caller that sees every byte: sends raw HTTP/1.1 and keeps the answer as it came, chunk framing,
 * trailers, interim answers and all.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly bytes: Buffer;
  /** Everything before the body as on the wire, interim answers included. */
  readonly head: string;
  readonly statusLine: string;
  readonly status: number;
  /** In order, as on the wire. */
  readonly headers: ReadonlyArray<readonly [string, string]>;
  header(name: string): string | undefined;
  /** With chunk framing undone. */
  readonly body: Buffer;
  readonly trailers: ReadonlyArray<readonly [string, string]>;
  /** What follows the last chunk, as on the wire. */
  readonly trailerSection: string;
}

export interface RawRequest {
  readonly port: number;
  readonly method?: string;
  /** Of HTTP; 1.1 unless given. */
  readonly version?: '1.0' | '1.1';
  readonly path: string;
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array;
}

export async function dial(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** One request on a connection of its own; the answer is complete when the service closes it. */
export async function callRaw({
  port,
  method = 'GET',
  version = '1.1',
  path,
  headers = [],
  body,
}: RawRequest): Promise<RawAnswer> {
  const socket = await dial(port);
  const lines = [`${method} ${path} HTTP/${version}`, 'Host: test', 'Connection: close', ...headers];
  if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  if (body !== undefined) socket.write(body);
  return parseAnswer(await readAll(socket), { bodiless: method === 'HEAD' });
}

export async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/**
 * Reads one answer; interim ones (1xx) are left out of it but stay in `bytes`. That of a HEAD is `bodiless`
 * whatever its headers say.
 */
export function parseAnswer(bytes: Buffer, { bodiless = false } = {}): RawAnswer {
  let start = 0;
  for (;;) {
    const end = bytes.indexOf('\r\n\r\n', start);
    if (end < 0)
      throw new Error(`no whole head in ${JSON.stringify(bytes.toString('latin1').slice(0, 200))}`);
    const [statusLine, ...lines] = bytes.toString('latin1', start, end).split('\r\n');
    const status = Number(statusLine!.split(' ')[1]);
    start = end + 4;
    if (status < 200 && status !== 101) continue;
    const headers = lines.map(pair);
    const header = (name: string): string | undefined =>
      headers.find(([key]) => key.toLowerCase() === name)?.[1];
    const chunked = !bodiless && header('transfer-encoding') === 'chunked';
    const head = bytes.toString('latin1', 0, start);
    const content = chunked
      ? dechunk(bytes.subarray(start))
      : { body: bytes.subarray(start), trailers: [], trailerSection: '' };
    return { bytes, head, statusLine: statusLine!, status, headers, header, ...content };
  }
}

function pair(line: string): readonly [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}

function dechunk(bytes: Buffer): Pick<RawAnswer, 'body' | 'trailers' | 'trailerSection'> {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = bytes.indexOf('\r\n', at);
    if (end < 0) throw new Error('the chunked body is cut off');
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16);
    at = end + 2;
    if (size === 0) break;
    chunks.push(bytes.subarray(at, at + size));
    at += size + 2;
  }
  const trailerSection = bytes.toString('latin1', at);
  const lines = trailerSection.split('\r\n').filter(line => line !== '');
  return { body: Buffer.concat(chunks), trailers: lines.map(pair), trailerSection };
}
