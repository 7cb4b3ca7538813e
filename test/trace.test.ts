/** W3C Trace Context: what is a valid `traceparent`, and what becomes of it. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatTraceparent, readTraceparent, traceContextOf } from '../src/trace.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('a valid traceparent', () => {
  it.each([
    ['sampled', `00-${TRACE}-${SPAN}-01`, true],
    ['not sampled', `00-${TRACE}-${SPAN}-00`, false],
    ['flags that nobody knows yet', `00-${TRACE}-${SPAN}-ff`, true],
    ['a version to come', `01-${TRACE}-${SPAN}-01`, true],
    ['a version to come that says more', `cc-${TRACE}-${SPAN}-00-what-the-future-brings`, false],
  ])('%s', (_, text, sampled) => {
    expect(readTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
    expect(traceContextOf(text, undefined)).toEqual({
      traceparent: `00-${TRACE}-${SPAN}-0${sampled ? 1 : 0}`,
    });
  });
});

describe('an invalid traceparent', () => {
  it.each([
    ['nothing', ''],
    ['capitals', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['version ff', `ff-${TRACE}-${SPAN}-01`],
    ['more than version 00 has', `00-${TRACE}-${SPAN}-01-more`],
    ['a version to come, with more that is not set apart', `01-${TRACE}-${SPAN}-01more`],
    ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['no span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a long span', `00-${TRACE}-${SPAN}0-01`],
    ['no flags', `00-${TRACE}-${SPAN}`],
    ['white space', ` 00-${TRACE}-${SPAN}-01`],
    ['a line break', `00-${TRACE}-${SPAN}-01\n`],
    ['two that were made one', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ])('%s', (_, text) => {
    expect(readTraceparent(text)).toBeUndefined();
    expect(traceContextOf(text, 'a=1')).toBeUndefined();
  });
});

it('is read as it was written', () => {
  const hex = (length: number) =>
    fc
      .array(fc.constantFrom(...'0123456789abcdef'.split('')), { minLength: length, maxLength: length })
      .map(digits => digits.join(''))
      .filter(id => /[^0]/.test(id));
  const ids = fc.record({ traceId: hex(32), spanId: hex(16), sampled: fc.boolean() });
  fc.assert(
    fc.property(ids, each => {
      expect(readTraceparent(formatTraceparent(each))).toEqual(each);
    }),
  );
});

it('keeps the state that came along, and none without a parent', () => {
  const traceparent = `00-${TRACE}-${SPAN}-01`;
  expect(traceContextOf(traceparent, 'a=1')).toEqual({ traceparent, tracestate: 'a=1' });
  expect(traceContextOf(undefined, 'a=1')).toBeUndefined();
});
