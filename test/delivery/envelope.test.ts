import { describe, expect, it } from 'vitest';
import {
  emptyEnvelope,
  envelopeHead,
  envelopeOf,
  envelopeTail,
  errorEnvelope,
  omittedEnvelope,
} from '../../src/delivery/envelope.ts';
import { possibleKinds } from '../../src/delivery/result.ts';

const run = { runId: '0190-x', projectId: 'p-1', app: 'hello' };
const finish = { runTimeMs: 12.3456789, completedAt: Date.UTC(2030, 0, 2, 3, 4, 5, 6) };
const START = '{"run_id":"0190-x","project_id":"p-1","app":"hello","status_code":200';
const END = ',"run_time_ms":12.346,"timestamp":"2030-01-02T03:04:05.006Z"}';

function of(body: string | Uint8Array, contentType?: string): string {
  const head = { statusCode: 200, contentType };
  return envelopeOf(run, head, Buffer.from(body as string), possibleKinds(contentType), finish).toString();
}

describe('an envelope', () => {
  it.each<[what: string, body: string | Uint8Array, type: string | undefined, middle: string]>([
    ['JSON', '{"n":12345678901234567890}', 'application/json', ',"result":{"n":12345678901234567890}'],
    ['JSON without a type', ' [1] ', undefined, ',"result": [1] '],
    ['text', 'a"b', 'text/plain', ',"content_type":"text/plain","result":"a\\"b"'],
    ['text without a type', 'a', undefined, ',"result":"a"'],
    ['an odd type', 'a', 'text/x; a="b"', ',"content_type":"text/x; a=\\"b\\"","result":"a"'],
    [
      'bytes',
      new Uint8Array([255]),
      'image/png',
      ',"content_type":"image/png","result_encoding":"base64","result":"/w=="',
    ],
    ['nothing', '', 'text/plain', ',"result":null'],
  ])('around %s', (_what, body, type, middle) => {
    expect(of(body, type)).toBe(`${START}${middle}${END}`);
  });

  it('around a stream without events is around an empty array', () => {
    const whole = envelopeOf(run, { statusCode: 200 }, Buffer.alloc(0), ['events'], finish);
    expect(whole.toString()).toBe(`${START},"result":[]${END}`);
  });

  it('around a stream that reports an error has that error', () => {
    const stream = Buffer.from('data: 1\n\nevent: error\ndata: {"type":"T","message":"m"}\n\n');
    const whole = envelopeOf(run, { statusCode: 200 }, stream, ['events'], finish);
    expect(whole.toString()).toBe(`${START},"error":{"type":"T","message":"m"}${END}`);
  });

  it('that still is encoded says how', () => {
    const head = { statusCode: 200, contentType: 'text/plain', contentEncoding: 'rot13' };
    expect(envelopeOf(run, head, Buffer.from('x'), ['bytes'], finish).toString()).toBe(
      `${START},"content_type":"text/plain","content_encoding":"rot13","result_encoding":"base64","result":"eA=="${END}`,
    );
  });

  it('in pieces is the same as whole', () => {
    const head = { statusCode: 200, contentType: 'text/plain' };
    expect(`${envelopeHead(run, head, 'text')}abc${envelopeTail('text', finish)}`).toBe(
      of('abc', 'text/plain'),
    );
  });

  it('without a result has null, an error, or what was left out', () => {
    expect(emptyEnvelope(run, { statusCode: 200 }, finish).toString()).toBe(`${START},"result":null${END}`);
    const error = { type: 'T', message: '"m"' };
    expect(errorEnvelope(run, { statusCode: 200 }, error, finish).toString()).toBe(
      `${START},"error":{"type":"T","message":"\\"m\\""}${END}`,
    );
    const omitted = { bytes: 20, limit: 10 };
    const note = ',"result_omitted":{"bytes":20,"limit":10}';
    for (const [contentType, described] of [
      ['application/json', ''],
      ['image/png', ',"content_type":"image/png"'],
      [undefined, ''],
    ] as const) {
      const whole = omittedEnvelope(run, { statusCode: 200, contentType }, omitted, finish);
      expect(whole.toString()).toBe(`${START}${described}${note}${END}`);
    }
  });
});
