/**
 * Spans as a collector takes them: OTLP, in protobuf. Each is written when it ends, so that nothing of it is
 * kept. By hand, since OpenTelemetry's own SDK took three times the CPU for the two spans of a call (25 µs, where
 * a whole call takes about 100). The numbers of the fields are those of opentelemetry-proto.
 */
import type { SpanIds } from '../trace.ts';
import { ProtobufWriter } from './protobuf.ts';

/** As they are numbered there. */
export const KIND = { server: 2, client: 3, consumer: 5 } as const;
export type SpanKind = keyof typeof KIND;

/** Flat list: name, value, name, value, … */
export type Attributes = readonly (string | number)[];

export interface EndedSpan extends SpanIds {
  readonly parentSpanId: string | undefined;
  readonly tracestate: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  /** In milliseconds since the epoch, with fractions. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Those that many spans share, as `attributeBytes`, and its own. */
  readonly shared: readonly Uint8Array[];
  readonly attributes: Attributes;
  readonly link: SpanIds | undefined;
  readonly failed: boolean;
}

const STATUS_ERROR = 2;
/** What a call says of itself is bounded elsewhere, but not this tightly. */
const LONGEST_TEXT = 4_096;
const FLAG_SAMPLED = 1;
const ATTRIBUTES_OF_SPAN = 9;
/** Of a millisecond. */
const NANOSECONDS = 1e6;

/** Attributes of a span, written beforehand. */
export function attributeBytes(attributes: Attributes): Uint8Array {
  const writer = new ProtobufWriter(1_024);
  writeAttributes(writer, ATTRIBUTES_OF_SPAN, attributes);
  return writer.take();
}

/** A span of a `ScopeSpans`. */
export function writeSpan(writer: ProtobufWriter, span: EndedSpan): void {
  const start = writer.begin(2);
  writer.hex(1, span.traceId);
  writer.hex(2, span.spanId);
  if (span.tracestate !== undefined) writer.text(3, bounded(span.tracestate));
  if (span.parentSpanId !== undefined) writer.hex(4, span.parentSpanId);
  writer.text(5, span.name);
  writer.number(6, KIND[span.kind]);
  writer.fixed64(7, span.startedAt * NANOSECONDS);
  writer.fixed64(8, span.endedAt * NANOSECONDS);
  for (const shared of span.shared) writer.raw(shared);
  writeAttributes(writer, ATTRIBUTES_OF_SPAN, span.attributes);
  if (span.link !== undefined) writeLink(writer, span.link);
  if (span.failed) {
    const status = writer.begin(15);
    writer.number(3, STATUS_ERROR);
    writer.end(status);
  }
  writer.fixed32(16, FLAG_SAMPLED);
  writer.end(start);
}

export interface Scope {
  readonly name: string;
  readonly version: string;
  /** Of the service. */
  readonly resource: Attributes;
}

/** A whole request, of spans that were written before. */
export function requestOf({ name, version, resource }: Scope, spans: Uint8Array): Buffer {
  const resourceWriter = new ProtobufWriter(1_024);
  const about = resourceWriter.begin(1);
  writeAttributes(resourceWriter, 1, resource);
  resourceWriter.end(about);
  const scopeWriter = new ProtobufWriter(256);
  const scope = scopeWriter.begin(1);
  scopeWriter.text(1, name);
  scopeWriter.text(2, version);
  scopeWriter.end(scope);
  const inScope = Buffer.concat([scopeWriter.take(), spans]);
  const ofResource = Buffer.concat([resourceWriter.take(), head(2, inScope.length), inScope]);
  return Buffer.concat([head(1, ofResource.length), ofResource]);
}

/** Of a message of any length. */
function head(field: number, length: number): Buffer {
  const writer = new ProtobufWriter(128);
  writer.number(field, length);
  const bytes = writer.take();
  bytes[0]! |= 2;
  return bytes;
}

function writeAttributes(writer: ProtobufWriter, field: number, attributes: Attributes): void {
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
