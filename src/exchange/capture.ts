/**
 * Gathers a custom app's answer while it passes to the caller, and makes the body of the delivery from it.
 *
 * A small answer stays in memory. Beyond a threshold, or when all captures together fill their share of
 * memory, it goes to a spool file: JSON and plain bytes already in the form that the envelope needs, so
 * that only the tail is missing at the end; whatever cannot be known before it is whole (text, encoded
 * answers) as it came, to be rewritten by a second pass. Beyond `maxBody` only the size is counted.
 */
import { createEncoder, possibleKinds, type ResultEncoder, type ResultKind } from '../delivery/result.ts';
import {
  type AnswerHead,
  envelopeHead,
  envelopeOf,
  envelopeTail,
  errorEnvelope,
  type Finish,
  omittedEnvelope,
  type RunIdentity,
} from '../delivery/envelope.ts';
import type { NewBody } from '../store/store.ts';
import { codingsOf, decodeSmall, decodeStream } from './decode.ts';
import type { Spool, SpoolFile } from './spool.ts';

export interface CaptureOptions {
  readonly run: RunIdentity;
  readonly head: AnswerHead;
  readonly contentEncoding: string | undefined;
  /** A cortex stream: its events become an array. */
  readonly events: boolean;
  readonly maxBody: number;
  readonly spool: Spool;
}

/** What one capture may hold in memory, and what all of them may. */
const MEMORY_PER_CAPTURE = 128 * 1024;
const MEMORY_OF_ALL = 64 * 1024 * 1024;
/** What is decoded on the spot, since it is done before a tick would matter. */
const DECODE_AT_ONCE = 256 * 1024;
/** How many times `maxBody` is decoded for the sake of the size alone: there is no end to a bomb. */
const COUNTED = 16;

export class Capture {
  readonly #options: CaptureOptions;
  readonly #kinds: readonly ResultKind[];
  /** Undefined: the answer is encoded in a way that cannot be undone. */
  readonly #codings: readonly string[] | undefined;
  #chunks: Uint8Array[] = [];
  #size = 0;
  #held = 0;
  #file: SpoolFile | undefined;
  /** Of a spool file that is written in its final form. */
  #encoder: ResultEncoder | undefined;
  #headBytes = 0;

  constructor(options: CaptureOptions) {
    this.#options = options;
    this.#codings = codingsOf(options.contentEncoding);
    if (options.events) this.#kinds = ['events'];
    else this.#kinds = this.#codings === undefined ? ['bytes'] : possibleKinds(options.head.contentType);
  }

  /** False: wait for `whenDrained` before more, or memory would grow. */
  write(chunk: Uint8Array): boolean {
    this.#size += chunk.length;
    if (this.#size > this.#options.maxBody) {
      this.discard();
      return true;
    }
    if (this.#file !== undefined) return this.#append(chunk);
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    const { memory } = this.#options.spool;
    memory.take(chunk.length);
    return this.#held <= MEMORY_PER_CAPTURE && memory.used <= MEMORY_OF_ALL ? true : this.#spill();
  }

  whenDrained(callback: () => void): void {
    this.#file?.whenDrained(callback);
  }

  /** The answer is complete: its delivery's body. At once where it is small. */
  complete(finish: Finish): NewBody | Promise<NewBody> {
    const { run, head, maxBody } = this.#options;
    if (this.#size > maxBody) {
      return { bytes: omittedEnvelope(run, head, { bytes: this.#size, limit: maxBody }, finish) };
    }
    if (this.#file !== undefined) return this.#completeFile(this.#file, finish);
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#release();
    if (this.#codings === undefined || this.#codings.length === 0 || bytes.length === 0) {
      return { bytes: envelopeOf(run, this.#headAsSent(), bytes, this.#kinds, finish) };
    }
    return this.#completeEncoded(bytes, this.#codings, finish);
  }

  /** There is no whole answer to deliver. */
  discard(): void {
    this.#release();
    const file = this.#file;
    this.#file = undefined;
    this.#encoder = undefined;
    void file?.discard();
  }

  #headAsSent(): AnswerHead {
    const { head, contentEncoding } = this.#options;
    return this.#codings === undefined ? { ...head, contentEncoding } : head;
  }

  #completeEncoded(
    bytes: Uint8Array,
    codings: readonly string[],
    finish: Finish,
  ): NewBody | Promise<NewBody> {
    const { run, head, maxBody } = this.#options;
    try {
      const decoded = decodeSmall(bytes, codings, Math.min(DECODE_AT_ONCE, maxBody));
      if (decoded !== undefined) return { bytes: envelopeOf(run, head, decoded, this.#kinds, finish) };
    } catch {
      return { bytes: this.#undecodable(bytes, finish) };
    }
    const source = async function* (): AsyncGenerator<Uint8Array> {
      yield bytes;
    };
    return this.#rewrite(source, codings, finish);
  }

  /** Damaged, or not encoded as it says: passed on as it came. */
  #undecodable(bytes: Uint8Array, finish: Finish): Buffer {
    const { run, head, contentEncoding } = this.#options;
    return envelopeOf(run, { ...head, contentEncoding }, bytes, ['bytes'], finish);
  }

  #spill(): boolean {
    const { spool, run, head } = this.#options;
    const file = spool.create(run.runId);
    this.#file = file;
    const [kind] = this.#kinds;
    if (this.#codings?.length === 0 && (kind === 'json' || kind === 'bytes')) {
      const opening = Buffer.from(envelopeHead(run, head, kind));
      this.#encoder = createEncoder(kind, head.contentType);
      this.#headBytes = opening.length;
      file.append(opening);
    }
    const chunks = this.#chunks;
    this.#release();
    let room = true;
    for (const chunk of chunks) room = this.#append(chunk);
    return room;
  }

  #append(chunk: Uint8Array): boolean {
    // JSON that turns out not to be is written as it came all the same, for the second pass.
    const encoded = this.#encoder?.push(chunk) ?? chunk;
    return this.#file!.append(encoded);
  }

  async #completeFile(file: SpoolFile, finish: Finish): Promise<NewBody> {
    const [kind] = this.#kinds;
    const end = this.#encoder?.end();
    if (end !== undefined) {
      file.append(Buffer.concat([end, Buffer.from(envelopeTail(kind!, finish))]));
      return file.finish();
    }
    try {
      return await this.#rewrite(() => file.read(this.#headBytes), this.#codings ?? [], finish);
    } finally {
      await file.discard();
    }
  }

  /** The second pass: tries one kind after the other until one fits the whole answer. */
  async #rewrite(
    source: () => AsyncIterable<Uint8Array>,
    codings: readonly string[],
    finish: Finish,
  ): Promise<NewBody> {
    const ceiling = this.#options.maxBody * COUNTED;
    const decoded = (): AsyncIterable<Uint8Array> => decodeStream(source(), codings, ceiling);
    for (const kind of this.#kinds) {
      const body = await this.#writeAs(kind, this.#headAsSent(), decoded(), finish).catch(error => {
        if (codings.length === 0) throw error;
      });
      if (body === undefined) break; // cannot be decoded
      if (body !== 'other kind') return body;
    }
    const head = { ...this.#options.head, contentEncoding: this.#options.contentEncoding };
    const body = await this.#writeAs('bytes', head, source(), finish);
    if (body === 'other kind') throw new Error('an answer fits no kind');
    return body;
  }

  async #writeAs(
    kind: ResultKind,
    head: AnswerHead,
    source: AsyncIterable<Uint8Array>,
    finish: Finish,
  ): Promise<NewBody | 'other kind'> {
    const { run, maxBody, spool } = this.#options;
    const file = spool.create(run.runId);
    const encoder = createEncoder(kind, head.contentType);
    let size = 0;
    let finished: NewBody | undefined;
    try {
      file.append(Buffer.from(envelopeHead(run, head, kind)));
      for await (const chunk of source) {
        size += chunk.length;
        if (size > maxBody * COUNTED) break;
        if (size > maxBody) continue;
        const encoded = encoder.push(chunk);
        if (encoded === undefined) return 'other kind';
        if (!file.append(encoded)) await new Promise<void>(resolve => file.whenDrained(resolve));
      }
      if (size > maxBody)
        return { bytes: omittedEnvelope(run, head, { bytes: size, limit: maxBody }, finish) };
      const end = encoder.end();
      if (end === undefined) return 'other kind';
      if (encoder.error !== undefined) return { bytes: errorEnvelope(run, head, encoder.error, finish) };
      file.append(Buffer.concat([end, Buffer.from(envelopeTail(kind, finish))]));
      finished = await file.finish();
      return finished;
    } finally {
      if (finished === undefined) await file.discard();
    }
  }

  #release(): void {
    this.#options.spool.memory.give(this.#held);
    this.#held = 0;
    this.#chunks = [];
  }
}
