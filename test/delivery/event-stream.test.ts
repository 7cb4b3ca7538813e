import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventStreamReader, type StreamEvent } from '../../src/delivery/event-stream.ts';

function read(...pieces: Array<string | Uint8Array>): StreamEvent[] {
  const reader = new EventStreamReader();
  const events = pieces.flatMap(piece => reader.push(Buffer.from(piece as string)));
  return [...events, ...reader.end()];
}

describe('an event stream', () => {
  it.each<[what: string, text: string, events: StreamEvent[]]>([
    ['one event', 'data: a\n\n', [{ name: '', data: 'a' }]],
    ['several lines of data', 'data: a\ndata:b\ndata\n\n', [{ name: '', data: 'a\nb\n' }]],
    ['only one space is cut', 'data:  a \n\n', [{ name: '', data: ' a ' }]],
    [
      'a name',
      'event: x\ndata: a\n\ndata: b\n\n',
      [
        { name: 'x', data: 'a' },
        { name: '', data: 'b' },
      ],
    ],
    [
      'comments, ids and unknown fields',
      ': c\nid: 1\nretry: 9\nfoo: x\ndata: a\n\n',
      [{ name: '', data: 'a' }],
    ],
    ['no data, no event', 'event: x\n\n:c\n\n\n\n', []],
    [
      'empty data',
      'data:\n\ndata\n\n',
      [
        { name: '', data: '' },
        { name: '', data: '' },
      ],
    ],
    [
      'CR LF',
      'data: a\r\n\r\ndata: b\r\n\r\n',
      [
        { name: '', data: 'a' },
        { name: '', data: 'b' },
      ],
    ],
    [
      'CR',
      'data: a\r\rdata: b\r\r',
      [
        { name: '', data: 'a' },
        { name: '', data: 'b' },
      ],
    ],
    [
      'a last event without its blank line',
      'data: a\n\ndata: b',
      [
        { name: '', data: 'a' },
        { name: '', data: 'b' },
      ],
    ],
    ['colons in the data', 'data: a:b: c\n\n', [{ name: '', data: 'a:b: c' }]],
    ['a byte order mark', '\ufeffdata: a\n\n', [{ name: '', data: 'a' }]],
    ['nothing', '', []],
  ])('reads %s', (_what, text, events) => {
    expect(read(text)).toEqual(events);
  });

  it('reads the same however it is cut into pieces', () => {
    const line = fc.constantFrom('data: é😀', 'data:x', 'event: y', ': c', '', 'data', 'id: 1');
    const end = fc.constantFrom('\n', '\r\n', '\r');
    const text = fc
      .array(
        fc.tuple(line, end).map(parts => parts.join('')),
        { maxLength: 12 },
      )
      .map(all => all.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat(80), { maxLength: 8 }), (whole, cuts) => {
        const bytes = Buffer.from(whole);
        const places = [0, ...cuts.filter(cut => cut < bytes.length).sort((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((place, i) => bytes.subarray(places[i], place));
        expect(read(...pieces)).toEqual(read(bytes));
      }),
      { numRuns: 500 },
    );
  });
});
