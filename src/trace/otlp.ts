/**
 * Spans as a collector takes them: OTLP, in protobuf. Each is written when it ends, behind those before it, into
 * the request that is going to be sent, so that nothing of it is kept or copied. By hand, since OpenTelemetry's
 * own SDK took several times the CPU. The numbers of the fields are those of opentelemetry-proto.
 */
import type { SpanIds } from '../trace.ts';
import { ProtobufWriter } from './protobuf.ts';

/** As they are numbered there. */
export const KIND = { server: 2, client: 3, consumer: 5 } as const;
export type SpanKind = keyof typeof KIND;

/** Flat list: name, value, name, value, … */
export type Attributes = readonly (string | number)[];

export interface EndedSpan extends Pick<SpanIds, 'traceId' | 'spanId'> {
  readonly parent: SpanIds | undefined;
  /** Whether it is linked to its parent besides. */
  readonly linked: boolean;
  readonly tracestate: string | undefined;
  /** In milliseconds since the epoch, with fractions. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** What it shares with others, as `writeBeginning`, `writeEnd` and `writeAttributes` make it. */
  readonly beginning: Uint8Array;
  readonly ending: Uint8Array;
  readonly app: Uint8Array;
  readonly attributes: Attributes;
}

const STATUS_ERROR = 2;
/** What a call says of itself is bounded elsewhere, but not this tightly. */
const LONGEST_TEXT = 4_096;
const FLAG_SAMPLED = 1;
/** Of a millisecond. */
const NANOSECONDS = 1e6;

export interface Beginning {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
}

/** What is known of a span when it begins, and true of many. */
export function writeBeginning(writer: ProtobufWriter, { name, kind, attributes }: Beginning): void {
  writer.text(5, name);
  writer.number(6, KIND[kind]);
  writer.fixed32(16, FLAG_SAMPLED); // others are not told
  writeAttributes(writer, attributes);
}

/** What is known of it when it ends, and true of many. */
export function writeEnd(writer: ProtobufWriter, attributes: Attributes, failed: boolean): void {
  writeAttributes(writer, attributes);
  if (!failed) return;
  const status = writer.begin(15);
  writer.number(3, STATUS_ERROR);
  writer.end(status);
}

/** Of a span. */
export function writeAttributes(writer: ProtobufWriter, attributes: Attributes): void {
  writePairs(writer, 9, attributes);
}

/** A span of a `ScopeSpans`. */
export function writeSpan(writer: ProtobufWriter, span: EndedSpan): void {
  const { traceId, parent, tracestate } = span;
  const start = writer.begin(2);
  writer.hex(1, traceId);
  writer.hex(2, span.spanId);
  if (tracestate !== undefined) writer.text(3, bounded(tracestate));
  if (parent !== undefined) writer.hex(4, parent.spanId);
  writer.fixed64(7, span.startedAt * NANOSECONDS);
  writer.fixed64(8, span.endedAt * NANOSECONDS);
  writer.raw(span.beginning);
  writer.raw(span.ending);
  writer.raw(span.app);
  writeAttributes(writer, span.attributes);
  if (span.linked && parent !== undefined) writeLink(writer, parent);
  writer.end(start);
}

export interface Scope {
  readonly name: string;
  readonly version: string;
  /** Of the service. */
  readonly resource: Attributes;
}

/** A request that is filled span by span, sent, and filled anew. */
export interface SpanRequest {
  add(span: EndedSpan): void;
  /** All of it, good until it is filled anew. */
  bytes(): Buffer;
  clear(): void;
}

const FIRST_BYTES = 256 * 1024;

export function createSpanRequest({ name, version, resource }: Scope): SpanRequest {
  const writer = new ProtobufWriter(FIRST_BYTES);
  const ofResource = writer.begin(1);
  const about = writer.begin(1);
  writePairs(writer, 1, resource);
  writer.end(about);
  const inScope = writer.begin(2);
  const scope = writer.begin(1);
  writer.text(1, name);
  writer.text(2, version);
  writer.end(scope);
  const { length: headLength } = writer.written();
  return {
    add: span => writeSpan(writer, span),
    bytes() {
      writer.end(inScope);
      writer.end(ofResource);
      return writer.written();
    },
    clear: () => writer.cutTo(headLength),
  };
}

function writePairs(writer: ProtobufWriter, field: number, attributes: Attributes): void {
  for (let i = 0; i < attributes.length; i += 2) {
    const pair = writer.begin(field);
    writer.text(1, attributes[i] as string);
    const value = writer.begin(2);
    const given = attributes[i + 1]!;
    if (typeof given === 'number') writer.number(3, given);
    else writer.text(1, bounded(given));
    writer.end(value);
    writer.end(pair);
  }
}

function writeLink(writer: ProtobufWriter, { traceId, spanId, sampled }: SpanIds): void {
  const link = writer.begin(13);
  writer.hex(1, traceId);
  writer.hex(2, spanId);
  writer.fixed32(6, sampled ? FLAG_SAMPLED : 0);
  writer.end(link);
}

function bounded(text: string): string {
  return text.length > LONGEST_TEXT ? text.slice(0, LONGEST_TEXT) : text;
}
