/** What is written can be read by the rules of protobuf, whatever its length. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { ProtobufWriter } from '../../src/trace/protobuf.ts';
import { fieldsOf } from '../support/collector.ts';

it('is read as it was written, in a message within a message', () => {
  const hex = fc.uint8Array({ minLength: 1, maxLength: 16 }).map(bytes => Buffer.from(bytes).toString('hex'));
  const message = fc.record({
    field: fc.integer({ min: 1, max: 100 }),
    text: fc.string({ unit: 'binary', maxLength: 200 }),
    id: hex,
    number: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    long: fc.maxSafeNat(),
  });
  fc.assert(
    fc.property(message, ({ field, text, id, number, long }) => {
      const writer = new ProtobufWriter(16);
      const start = writer.begin(field);
      writer.text(1, text);
      writer.hex(2, id);
      writer.number(3, number);
      writer.fixed64(4, long);
      writer.fixed32(5, number);
      writer.end(start);
      const [inner] = fieldsOf(writer.written()).all(field);
      const read = fieldsOf(inner!);
      expect([read.text(1), read.hex(2), read.number(3), read.fixed(4), read.number(5)]).toEqual([
        Buffer.from(text).toString(),
        id,
        number,
        BigInt(long),
        number,
      ]);
    }),
  );
});
