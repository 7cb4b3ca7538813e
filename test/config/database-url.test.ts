/** Addresses of databases: what is taken, what is refused, and that writing one and reading it gives the same. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DatabaseUrl,
  formatDatabaseUrl,
  parseDatabaseUrl,
  SSL_MODES,
} from '../../src/config/database-url.ts';

const PLAIN: DatabaseUrl = {
  host: 'h',
  port: 5432,
  database: 'd',
  user: 'u',
  sslmode: 'disable',
  files: {},
};

function faultsOf(text: string): readonly string[] {
  const read = parseDatabaseUrl(text);
  return 'faults' in read ? read.faults : [];
}

describe('a database URL', () => {
  it.each<[string, Partial<DatabaseUrl>]>([
    ['postgres://u@h/d', {}],
    ['postgresql://u@h/d', {}],
    ['POSTGRES://u@h:6000/d', { port: 6000 }],
    ['postgres://u:@h/d', {}],
    ['postgres://u@h/d?', {}],
    ['postgres://u:p@h/d', { password: 'p' }],
    ['postgres://u%40x:p%2F%3F%25+%C3%A9@h/d%20d', { user: 'u@x', password: 'p/?%+é', database: 'd d' }],
    ['postgres://u:a:b[é@h/d', { password: 'a:b[é' }],
    ['postgres://u@db.internal/d', { host: 'db.internal' }],
    ['postgres://u@10.0.0.1/d', { host: '10.0.0.1' }],
    ['postgres://u@[::1]:6000/d', { host: '::1', port: 6000 }],
    ['postgres://u@%2Frun%2Fpg/d', { host: '/run/pg' }],
    ['postgres://u@/d?host=/run/pg', { host: '/run/pg' }],
    ['postgres://u@:6000/d?host=%2Frun%2Fpg', { host: '/run/pg', port: 6000 }],
    ['postgres://u@/d?host=db.internal', { host: 'db.internal' }],
    ['postgres://u@h/d?sslmode=disable', {}],
    ['postgres://u@h/d?sslmode=require', { sslmode: 'require' }],
    ['postgres://u@h/d?sslmode=verify-full', { sslmode: 'verify-full' }],
    [
      'postgres://u@h/d?sslmode=verify-full&sslrootcert=system',
      { sslmode: 'verify-full', files: { sslrootcert: 'system' } },
    ],
    [
      'postgres://u@h/d?sslrootcert=ca%26b.pem&sslmode=verify-ca',
      { sslmode: 'verify-ca', files: { sslrootcert: 'ca&b.pem' } },
    ],
    [
      'postgres://u@h/d?sslmode=require&sslcert=a+b.pem&sslkey=/k=y.pem',
      { sslmode: 'require', files: { sslcert: 'a+b.pem', sslkey: '/k=y.pem' } },
    ],
  ])('is taken: %s', (text, parts) => expect(parseDatabaseUrl(text)).toEqual({ ...PLAIN, ...parts }));

  const shape = ['expected postgres://user:password@host:5432/database, with characters that are special'];
  it.each([
    ['', shape],
    ['db', shape],
    ['mysql://u@h/d', shape],
    ['postgres:u@h/d', shape],
    ['postgres://u@h/d#f', shape],
    ['postgres://u@h/d/e', shape],
    ['postgres://u:p/w@h/d', shape],
    ['postgres://u:p?w@h/d', shape],
    ['postgres://u:p@w@h/d', shape],
    ['postgres://u:p w@h/d', shape],
    ['postgres://u:p%w@h/d', shape],
    ['postgres://u:p%00@h/d', shape],
    ['postgres://u@h:x/d', shape],
    ['postgres://u@[h]/d', shape],
    ['postgres://u@h/d\n', shape],
    ['postgres://h/d', ['has no user; expected postgres://']],
    ['postgres://u@/d', ['has no host; expected']],
    ['postgres://u@h', ['has no database; expected']],
    ['postgres://', ['has no user and no host and no database; expected']],
    ['postgres://u@h:0/d', ['expected a port from 1 to 65535']],
    ['postgres://u@h:65536/d', ['expected a port from 1 to 65535']],
    ['postgres://u@a,b/d', ['has several hosts; expected one: ']],
    ['postgres://u@a/d?host=b', ['has several hosts']],
    [
      'postgres://u@h/d?application_name=x',
      ['has a parameter that is not known; the known ones are host, sslmode, sslrootcert, sslcert, sslkey'],
    ],
    ['postgres://u@h/d?SSLMODE=require', ['has a parameter that is not known']],
    ['postgres://u@h/d?sslmode=require&sslmode=require', ['has the parameter sslmode twice']],
    ['postgres://u@h/d?sslmode=', ['has the parameter sslmode without a value']],
    ['postgres://u@h/d?sslmode', ['has the parameter sslmode without a value']],
    [
      'postgres://u@h/d?sslmode=prefer',
      ['sslmode=prefer is refused: it falls back to plain text without a word; expected one of disable, '],
    ],
    ['postgres://u@h/d?sslmode=allow', ['sslmode=allow is refused: it falls back to plain text']],
    ['postgres://u@h/d?sslmode=on', ['sslmode: expected one of disable, require, verify-ca, verify-full']],
    ['postgres://u@/d?host=/run&sslmode=require', ['sslmode: expected disable with a Unix socket']],
    ['postgres://u@h/d?sslrootcert=a', ['has certificates and no encryption; expected sslmode=verify-full']],
    ['postgres://u@h/d?sslmode=disable&sslcert=a&sslkey=b', ['has certificates and no encryption']],
    [
      'postgres://u@h/d?sslmode=require&sslrootcert=a',
      ['sslrootcert has no effect with sslmode=require; expected verify-full or verify-ca'],
    ],
    ['postgres://u@h/d?sslmode=verify-ca', ['sslmode=verify-ca needs the file of an authority']],
    ['postgres://u@h/d?sslmode=verify-ca&sslrootcert=system', ['sslmode=verify-ca needs the file']],
    ['postgres://u@h/d?sslmode=require&sslcert=a', ['expected both or none of sslcert, sslkey']],
    ['postgres://u@h/d?sslmode=require&sslkey=a', ['expected both or none of sslcert, sslkey']],
    [
      'postgres://h:0?x=1&sslmode=prefer',
      ['has no user and no database', 'expected a port', 'has a parameter', 'sslmode=prefer'],
    ],
  ])('is refused: %j', (text, faults) => {
    expect(faultsOf(text)).toEqual(faults.map(fault => expect.stringContaining(fault)));
  });
});

it('reads to the same when it is written', () => {
  const text = fc.string({ minLength: 1, unit: 'grapheme' }).filter(each => !each.includes('\0'));
  const name = text.filter(each => !/^\/|,/.test(each));
  const file = text.filter(each => each !== 'system');
  const own = fc.option(fc.record({ sslcert: file, sslkey: file }), { nil: {} });
  const encryption = fc
    .tuple(fc.constantFrom(...SSL_MODES), file, own)
    .map(([sslmode, sslrootcert, certificate]) => {
      if (sslmode === 'disable') return { sslmode, files: {} };
      const roots = sslmode === 'require' ? {} : { sslrootcert };
      return { sslmode, files: { ...roots, ...certificate } };
    });
  const place = fc.oneof(
    fc.record({ host: fc.oneof(name, fc.ipV4(), fc.ipV6()), encryption }),
    fc.record({
      host: text.map(each => `/${each}`).filter(each => !each.includes(',')),
      encryption: fc.constant({ sslmode: 'disable' as const, files: {} }),
    }),
  );
  const who = { user: text, database: text, port: fc.integer({ min: 1, max: 65_535 }) };
  const url = fc.record(
    { ...who, password: text, place },
    { requiredKeys: ['user', 'database', 'port', 'place'] },
  );
  fc.assert(
    fc.property(url, ({ place: { host, encryption }, ...parts }) => {
      const whole = { host, ...parts, ...encryption };
      expect(parseDatabaseUrl(formatDatabaseUrl(whole))).toEqual(whole);
    }),
  );
});
