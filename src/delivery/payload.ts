/**
 * The body of a delivery made ready for one attempt. One in memory is used as it is; any other is read twice,
 * piece by piece, for the signature and for sending, and never held whole.
 *
 * A body that is gone or too short is a fault of the attempt. One that only cannot be read at present (the
 * disk fails, the store is away) withholds the attempt: the receiver has no part in that.
 */
import { open } from 'node:fs/promises';
import type { Body } from '../store/store.ts';
import { AttemptFault } from './outcome.ts';
import { type SigningInput, signDelivery, startSignature } from './signature.ts';
import { WithheldError } from './withheld.ts';

export type Content = Uint8Array | AsyncIterable<Uint8Array>;

export interface Payload {
  readonly size: number;
  /** True while a piece is being read: whoever waits then does not wait for the receiver. */
  readonly reading: boolean;
  /** Hex digest of the signature. */
  sign(input: SigningInput): Promise<string>;
  /**
   * What to send; called once. The first piece is there when it resolves, so that what cannot be read is known
   * before a connection is opened. Each piece is given out only while `permitted`.
   */
  content(permitted: () => boolean): Promise<Content>;
  /** Lets go of what it reads from. */
  close(): void;
}

type Pieces = AsyncGenerator<Uint8Array, void>;

const CHUNK = 64 * 1024;

export function createPayload(body: Body): Payload {
  if ('bytes' in body) return memoryPayload(body.bytes);
  const { size } = body;
  return new PiecesPayload(size, 'file' in body ? () => filePieces(body.file, size) : body.pieces);
}

function memoryPayload(bytes: Uint8Array): Payload {
  return {
    size: bytes.byteLength,
    reading: false,
    sign: async input => signDelivery({ ...input, body: bytes }),
    content: async () => bytes,
    close: () => {},
  };
}

class PiecesPayload implements Payload {
  readonly size: number;
  readonly #source: () => AsyncIterable<Uint8Array>;
  #open: Pieces | undefined;
  #closed = false;
  reading = false;

  constructor(size: number, source: () => AsyncIterable<Uint8Array>) {
    this.size = size;
    this.#source = source;
  }

  async sign(input: SigningInput): Promise<string> {
    const signature = startSignature(input);
    this.#open = this.#read();
    for await (const piece of this.#open) signature.update(piece);
    return signature.digest('hex');
  }

  async content(permitted: () => boolean): Promise<AsyncIterable<Uint8Array>> {
    const pieces = this.#read();
    this.#open = pieces;
    return withFirst(await pieces.next(), pieces, permitted);
  }

  close(): void {
    this.#closed = true;
    // A read that is under way ends first, which nobody should have to wait for.
    this.#open?.return().catch(() => {});
  }

  /**
   * Exactly as many bytes as there should be, and not asked for more. Letting go of the source is not waited
   * for: the receiver's answer may come sooner, and on a request that has not ended it costs the connection.
   */
  async *#read(): Pieces {
    if (this.#closed) return;
    const source = this.#source()[Symbol.asyncIterator]();
    let rest = this.size;
    try {
      for (;;) {
        this.reading = true;
        const { done, value } = await source.next();
        this.reading = false;
        if (done === true) break;
        rest -= value.byteLength;
        if (rest >= 0) yield value;
        if (rest <= 0) break;
      }
    } catch (error) {
      if (error instanceof AttemptFault) throw error;
      throw new WithheldError('body_unreadable', `the body cannot be read: ${String(error)}`);
    } finally {
      this.reading = false;
      source.return?.().catch(() => {}); // all that is wanted of it has been read
    }
    if (rest !== 0) throw new AttemptFault('body_missing', 'the body does not have its length');
  }
}

async function* withFirst(
  first: IteratorResult<Uint8Array, void>,
  rest: Pieces,
  permitted: () => boolean,
): Pieces {
  for (let each = first; each.done !== true; each = await rest.next()) {
    if (!permitted())
      throw new WithheldError('not_permitted', 'not permitted between two pieces of the body');
    yield each.value;
  }
}

async function* filePieces(path: string, size: number): Pieces {
  await using file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new AttemptFault('body_missing', 'the file of the body is gone') : error;
  });
  if ((await file.stat()).size < size) {
    throw new AttemptFault('body_missing', 'the file of the body is too short');
  }
  for (let position = 0; position < size; ) {
    const length = Math.min(CHUNK, size - position);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, position);
    if (bytesRead === 0) throw new AttemptFault('body_missing', 'the file of the body is too short');
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}
