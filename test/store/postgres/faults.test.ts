/** Which errors are tried again. */
import { DatabaseError } from 'pg';
import { describe, expect, it } from 'vitest';
import { describe as inWords, isEnvironmental } from '../../../src/store/postgres/faults.ts';

function answer(code: string, message = 'of the server'): DatabaseError {
  return Object.assign(new DatabaseError(message, 0, 'error'), { code });
}

describe('a fault', () => {
  it.each([
    ['08006', 'connection failure'],
    ['25006', 'read-only'],
    ['28P01', 'the password was changed'],
    ['40001', 'serialization'],
    ['40P01', 'deadlock'],
    ['53100', 'disk full'],
    ['53300', 'too many connections'],
    ['55P03', 'lock timeout'],
    ['57014', 'cancelled'],
    ['57P01', 'shutdown'],
    ['57P03', 'starting up'],
    ['58030', 'I/O error'],
  ])('%s is of the environment: %s', code => {
    expect(isEnvironmental(answer(code))).toBe(true);
  });

  it.each([
    ['22P02', 'not a number'],
    ['23505', 'there already'],
    ['42P01', 'no such table'],
    ['0A000', 'not supported'],
  ])('%s is of the operation: %s', code => {
    expect(isEnvironmental(answer(code))).toBe(false);
  });

  it('of a plan that no longer fits is of the environment', () => {
    expect(isEnvironmental(answer('0A000', 'cached plan must not change result type'))).toBe(true);
  });

  it('that is no answer is of the environment, a bug is not', () => {
    expect(isEnvironmental(new Error('Connection terminated unexpectedly'))).toBe(true);
    expect(isEnvironmental(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))).toBe(true);
    expect(isEnvironmental(new TypeError('undefined is not a function'))).toBe(false);
    expect(isEnvironmental(new RangeError('not a usable run id'))).toBe(false);
  });

  it('is told with its code', () => {
    expect(inWords(answer('53100', 'no space'))).toBe('no space (SQLSTATE 53100)');
    expect(inWords(new AggregateError([new Error('::1'), new Error('127.0.0.1')]))).toBe('::1; 127.0.0.1');
  });
});
