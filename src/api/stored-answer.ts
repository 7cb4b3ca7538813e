/**
 * The answer that a run ended with, or the body of a delivery, as it is sent on: one JSON object of any size,
 * which may lie in a file or come in pieces. Its opening brace is left out, so that something else can be said
 * before its first key.
 */
import { createReadStream } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Body } from '../store/store.ts';

/** A caller who does not read for this long has stalled. */
const STALL_MS = 60_000;

export interface StoredAnswer extends AsyncDisposable {
  /** Bytes of `content`. */
  readonly size: number;
  /** To be read once. It fails where the store does not have as much as it said. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** Its first piece is there when this resolves; undefined where retention was faster. */
export async function openAnswer(body: Body): Promise<StoredAnswer | undefined> {
  const size = 'bytes' in body ? body.bytes.byteLength : body.size;
  const pieces = piecesOf(body);
  const first = await pieces.next().catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (first === undefined || first.done === true) return undefined;
  return {
    size: size - 1,
    content: behindBrace(first.value, pieces, size),
    async [Symbol.asyncDispose]() {
      await pieces.return();
    },
  };
}

/** What is said around it. */
export interface Surroundings {
  /** Stands in for the brace. */
  readonly opening: string;
  readonly closing?: string;
}

/**
 * Where it breaks off, so does the connection, and nobody can take what came for the whole; `onUnreadable` is
 * told when the fault was on this side.
 */
export async function sendAnswer(
  res: ServerResponse,
  { opening, closing = '' }: Surroundings,
  { size, content }: StoredAnswer,
  onUnreadable: (error: unknown) => void,
): Promise<void> {
  const [beginning, end] = [Buffer.from(opening), Buffer.from(closing)];
  const length = beginning.byteLength + size + end.byteLength;
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': length });
  if (res.req.method === 'HEAD') {
    res.end();
    return;
  }
  async function* pieces(): Pieces {
    yield beginning;
    try {
      yield* content;
    } catch (error) {
      onUnreadable(error);
      throw error;
    }
    if (end.byteLength > 0) yield end;
  }
  res.setTimeout(STALL_MS, () => res.destroy());
  await pipeline(pieces, res).catch(() => {});
}

type Pieces = AsyncGenerator<Uint8Array, void, void>;

async function* piecesOf(body: Body): Pieces {
  if ('bytes' in body) yield body.bytes;
  else yield* 'file' in body ? (createReadStream(body.file) as AsyncIterable<Uint8Array>) : body.pieces();
}

async function* behindBrace(first: Uint8Array, others: Pieces, size: number): Pieces {
  let left = size - first.byteLength;
  yield first.subarray(1);
  for await (const piece of others) {
    left -= piece.byteLength;
    if (left < 0) break;
    yield piece;
  }
  if (left !== 0) throw new Error('a stored answer does not have its length');
}
