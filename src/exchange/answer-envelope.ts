/**
 * A cortex function's answer, wrapped into the envelope. What the caller gets is byte for byte the body of
 * the delivery.
 *
 * The HTTP status comes before the answer, and may be decided by a `status_code` inside it. So the answer
 * is held until it is complete, or too long to hold: then the head goes out and the rest streams through.
 * Once it streams, an answer that turns out invalid can only be cut off.
 */
import { PassThrough } from 'node:stream';
import {
  type AnswerHead,
  emptyEnvelope,
  envelopeHead,
  envelopeOf,
  envelopeTail,
  errorEnvelope,
  type Finish,
  omittedEnvelope,
} from '../delivery/envelope.ts';
import { JsonScanner } from '../delivery/json-scanner.ts';
import {
  type AnswerError,
  createEncoder,
  errorOf,
  possibleKinds,
  type ResultEncoder,
  type ResultKind,
} from '../delivery/result.ts';
import { Problem } from '../errors.ts';
import { codingsOf, decodeStream } from './decode.ts';
import type { Answer, AppHead } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { envelopeHeaders, headerList, headerValue } from './headers.ts';
import type { SpoolFile } from './spool.ts';

/** How much of an object is held for the sake of a `status_code` in it, and how much of anything else. */
const HOLD_OBJECT = 256 * 1024;
const HOLD_OTHER = 64 * 1024;

export function createEnvelopeAnswer(exchange: Exchange, head: AppHead): Answer {
  const codings = codingsOf(headerList(head.headers, 'content-encoding'));
  if (codings?.length === 0) return new EnvelopeAnswer(exchange, head, exchange);
  return createDecodedAnswer(exchange, head, codings);
}

/** What is held back while the caller or the disk cannot keep up. */
interface Flow {
  block(): void;
  unblock(): void;
}

/** Held back itself where the app cannot be: what is decoded is longer than what the app has sent. */
class Gate implements Flow {
  #blocks = 0;
  #open = Promise.withResolvers<void>();

  block(): void {
    if (this.#blocks++ === 0) this.#open = Promise.withResolvers<void>();
  }

  unblock(): void {
    if (--this.#blocks === 0) this.#open.resolve();
  }

  async passed(): Promise<void> {
    if (this.#blocks > 0) await this.#open.promise;
  }
}

/** The app was asked not to encode its answer; where it does so all the same, that is undone here. */
function createDecodedAnswer(
  exchange: Exchange,
  head: AppHead,
  codings: readonly string[] | undefined,
): Answer {
  const gate = new Gate();
  const answer = new EnvelopeAnswer(exchange, head, gate);
  const raw = new PassThrough();
  raw.on('error', () => {}); // told by whoever reads it, if anyone does
  const failed = (): void => exchange.fail(new Problem('app_bad_answer', 'The answer cannot be decoded'));
  const pump = async (): Promise<void> => {
    for await (const chunk of decodeStream(raw, codings!)) {
      answer.data(chunk);
      await gate.passed();
    }
    answer.end();
  };
  if (codings === undefined) queueMicrotask(failed);
  else pump().catch(failed);
  return {
    data(chunk) {
      if (raw.write(chunk)) return;
      exchange.block();
      raw.once('drain', () => exchange.unblock());
    },
    end: () => raw.end(),
    discard() {
      raw.destroy(new Error('the answer broke off'));
      answer.discard();
    },
    get statusCode() {
      return answer.statusCode;
    },
  };
}

interface AnswerStream {
  readonly kind: ResultKind;
  readonly encoder: ResultEncoder;
  /** What the delivery will be made of; undefined where there is none, or the answer is too large for it. */
  file: SpoolFile | undefined;
}

class EnvelopeAnswer implements Answer {
  readonly #exchange: Exchange;
  readonly #flow: Flow;
  readonly #app: AppHead;
  readonly #kinds: readonly ResultKind[];
  readonly #scanner = new JsonScanner();
  #held: Uint8Array[] = [];
  #size = 0;
  /** Set once the answer streams. */
  #stream: AnswerStream | undefined;

  constructor(exchange: Exchange, head: AppHead, flow: Flow) {
    this.#exchange = exchange;
    this.#flow = flow;
    this.#app = head;
    this.#kinds = possibleKinds(headerValue(head.headers, 'content-type'));
  }

  get statusCode(): number {
    return this.#scanner.statusCode ?? wrappedStatus(this.#app.status);
  }

  get #head(): AnswerHead {
    return { statusCode: this.statusCode, contentType: headerValue(this.#app.headers, 'content-type') };
  }

  data(chunk: Uint8Array): void {
    this.#size += chunk.length;
    if (this.#stream !== undefined) {
      this.#pass(chunk);
      return;
    }
    if (this.#kinds[0] === 'json') this.#scanner.push(chunk);
    this.#held.push(chunk);
    if (this.#size > (this.#scanner.root === 'object' ? HOLD_OBJECT : HOLD_OTHER)) this.#startStream();
  }

  end(): void {
    const finish = this.#exchange.finish();
    if (this.#stream === undefined) this.#endHeld(finish);
    else this.#endStream(this.#stream, finish);
  }

  discard(): void {
    void this.#stream?.file?.discard();
  }

  #endHeld(finish: Finish): void {
    const { run, deps, caller } = this.#exchange;
    const bytes = Buffer.concat(this.#held);
    const error = this.#app.status >= 400 ? reportedError(bytes) : undefined;
    const envelope = this.#envelope(bytes, error, finish);
    const omitted = this.#size > deps.maxBody;
    this.#exchange.complete(
      this.statusCode,
      finish,
      () => ({ bytes: omitted ? this.#omitted(finish) : envelope }),
      () => {
        const headers = envelopeHeaders(this.#app.headers, run.runId);
        const bodiless = this.statusCode === 204 || this.statusCode === 304;
        if (!bodiless) headers.push('Content-Length', String(envelope.length));
        caller.head(this.statusCode, undefined, headers);
        caller.end(bodiless ? undefined : envelope);
      },
    );
  }

  #envelope(bytes: Uint8Array, error: AnswerError | undefined, finish: Finish): Buffer {
    const { run } = this.#exchange;
    if (error !== undefined) return errorEnvelope(run, this.#head, error, finish);
    if (bytes.length === 0) return emptyEnvelope(run, this.#head, finish);
    return envelopeOf(run, this.#head, bytes, this.#kinds, finish);
  }

  #startStream(): void {
    const { run, deps, caller } = this.#exchange;
    const bytes = Buffer.concat(this.#held);
    this.#held = [];
    for (const kind of this.#kinds) {
      const encoder = createEncoder(kind, this.#head.contentType);
      const encoded = encoder.push(bytes);
      if (encoded === undefined) continue;
      const file = run.keeping === undefined ? undefined : deps.spool.create(run.runId);
      this.#stream = { kind, encoder, file };
      caller.head(this.statusCode, undefined, envelopeHeaders(this.#app.headers, run.runId));
      this.#emit(Buffer.concat([Buffer.from(envelopeHead(run, this.#head, kind)), encoded]));
      return;
    }
  }

  #pass(chunk: Uint8Array): void {
    const encoded = this.#stream!.encoder.push(chunk);
    if (encoded === undefined) this.#exchange.fail(notAsDeclared());
    else this.#emit(encoded);
  }

  #emit(bytes: Uint8Array): void {
    const { caller, deps } = this.#exchange;
    const stream = this.#stream!;
    if (!caller.write(bytes)) {
      this.#flow.block();
      caller.whenDrained(() => this.#flow.unblock());
    }
    if (stream.file === undefined) return;
    if (this.#size > deps.maxBody) {
      void stream.file.discard();
      stream.file = undefined;
    } else if (!stream.file.append(bytes)) {
      this.#flow.block();
      stream.file.whenDrained(() => this.#flow.unblock());
    }
  }

  #endStream(stream: AnswerStream, finish: Finish): void {
    const end = stream.encoder.end();
    if (end === undefined) {
      this.#exchange.fail(notAsDeclared());
      return;
    }
    const tail = Buffer.concat([end, Buffer.from(envelopeTail(stream.kind, finish))]);
    this.#exchange.complete(
      this.statusCode,
      finish,
      () => {
        if (stream.file === undefined) return { bytes: this.#omitted(finish) };
        stream.file.append(tail);
        return stream.file.finish();
      },
      () => this.#exchange.caller.end(tail),
    );
  }

  #omitted(finish: Finish): Buffer {
    const { run, deps } = this.#exchange;
    return omittedEnvelope(run, this.#head, { bytes: this.#size, limit: deps.maxBody }, finish);
  }
}

/** An envelope has a body, so an answer that promised none is simply empty. */
function wrappedStatus(status: number): number {
  return status === 204 || status === 205 || status === 304 ? 200 : status;
}

/** `{"error": {"type": …, "message": …}}`: how functions served elsewhere say that they threw. */
function reportedError(bytes: Buffer): AnswerError | undefined {
  try {
    const { error } = JSON.parse(bytes.toString()) as { error?: unknown };
    return errorOf(JSON.stringify(error));
  } catch {
    return undefined;
  }
}

function notAsDeclared(): Problem {
  return new Problem('app_bad_answer', 'The answer is not what its Content-Type says');
}
