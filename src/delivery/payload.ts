/**
 * The body of a delivery made ready for one attempt. One in memory is used as it is; one in a file is read
 * twice, for the signature and for sending, and never held whole.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Body } from '../store/store.ts';
import { AttemptFault } from './outcome.ts';
import { type SigningInput, signDelivery, startSignature } from './signature.ts';

export interface Payload {
  readonly size: number;
  /** Hex digest of the signature. */
  sign(input: SigningInput): Promise<string>;
  /** What to send; called once. */
  content(): Uint8Array | Readable;
  close(): Promise<void>;
}

const CHUNK = 64 * 1024;

export async function openPayload(body: Body): Promise<Payload> {
  return 'bytes' in body ? memoryPayload(body.bytes) : filePayload(body.file, body.size);
}

function memoryPayload(bytes: Uint8Array): Payload {
  return {
    size: bytes.byteLength,
    sign: async input => signDelivery({ ...input, body: bytes }),
    content: () => bytes,
    close: async () => {},
  };
}

async function filePayload(path: string, size: number): Promise<Payload> {
  const file = await openWhole(path, size);
  let stream: Readable | undefined;
  return {
    size,
    async sign(input) {
      const signature = startSignature(input);
      const chunk = Buffer.allocUnsafe(CHUNK);
      for (let position = 0; position < size; ) {
        const { bytesRead } = await file.read(chunk, 0, Math.min(CHUNK, size - position), position);
        if (bytesRead === 0) throw new AttemptFault('body_missing', 'the file of the body is too short');
        signature.update(chunk.subarray(0, bytesRead));
        position += bytesRead;
      }
      return signature.digest('hex');
    },
    content() {
      stream = file.createReadStream({ start: 0, end: size - 1, highWaterMark: CHUNK });
      // The request's own listener goes when the request ends, which a read still under way may outlast.
      return stream.on('error', () => {});
    },
    async close() {
      stream?.destroy();
      await file.close();
    },
  };
}

async function openWhole(path: string, size: number): Promise<FileHandle> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new AttemptFault('body_missing', 'the file of the body is gone') : error;
  });
  if ((await file.stat()).size >= size) return file;
  await file.close();
  throw new AttemptFault('body_missing', 'the file of the body is too short');
}
