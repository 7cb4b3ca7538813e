/**
 * The kinds of values that a configuration key can hold, each as a zod check that says what it expects.
 * Text is taken wherever a number, a boolean or a list is, since a value may come from a variable.
 */
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { isAllowableTarget, isLoopbackHost } from './address.ts';
import { DATABASE_URL, type DatabaseUrl, parseDatabaseUrl } from './database-url.ts';
import { MAKE_KEY, parseEncryptionKey } from './keys.ts';
import { parseDuration, parseSize } from './units.ts';

const HTTP_URL = /^https?:\/\/[^\s\\/?#\p{Cc}][^\s\\\p{Cc}]*$/iu;

function expected(what: string) {
  return ({ input }: { readonly input?: unknown }) =>
    input === undefined ? `is needed: expected ${what}` : `expected ${what}`;
}

/** Text that `parse` makes something of; undefined from it means that the text is not what is expected. */
export function parsed<T>(what: string, parse: (text: string) => T | undefined) {
  return z.string({ error: expected(what) }).transform((text, context): T => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: `expected ${what}` });
    return z.NEVER;
  });
}

/** Text of which `pattern` allows all. */
export function text(
  what = 'text that is not empty (in quotes where YAML would read a number)',
  pattern = /./su,
) {
  return z.string({ error: expected(what) }).regex(pattern, { error: `expected ${what}` });
}

export function choice<const T extends readonly string[]>(names: T) {
  return z.enum(names, { error: expected(`one of ${names.join(', ')}`) });
}

export function flag() {
  const fromText = (value: unknown) => (value === 'true' ? true : value === 'false' ? false : value);
  return z.preprocess(fromText, z.boolean({ error: expected('true or false') }));
}

export function integer(min: number, max: number) {
  const error = expected(`a whole number from ${min} to ${max}`);
  const fromText = (value: unknown) =>
    typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return z.preprocess(fromText, z.int({ error }).min(min, { error }).max(max, { error }));
}

export function duration(min: string, max: string) {
  const what = `a duration with its unit (ms, s, m, h, d), from ${min} to ${max}`;
  return parsed(what, within(parseDuration, min, max));
}

export function size(min: string, max: string) {
  const what = `a size such as 16MiB (KiB, MiB, GiB, KB, MB, GB, or plain bytes), from ${min} to ${max}`;
  const fromNumber = (value: unknown) => (typeof value === 'number' ? String(value) : value);
  return z.preprocess(fromNumber, parsed(what, within(parseSize, min, max)));
}

function within(parse: (text: string) => number | undefined, min: string, max: string) {
  return (text: string) => {
    const value = parse(text);
    return value !== undefined && value >= parse(min)! && value <= parse(max)! ? value : undefined;
  };
}

/** A list, or the same as text with commas. */
export function targets() {
  const what = 'an address, a CIDR or a host name (without port or brackets)';
  const item = z.string({ error: expected(what) }).refine(isAllowableTarget, { error: expected(what) });
  const fromText = (value: unknown) => {
    if (typeof value !== 'string') return value;
    return value.trim() === '' ? [] : value.split(',').map(part => part.trim());
  };
  return z.preprocess(
    fromText,
    z.array(item, { error: expected('a list of addresses, CIDRs and host names') }),
  );
}

/** A command and its arguments. */
export function words() {
  const error = expected('a list of a command and its arguments, such as [python3, server.py]');
  return z.array(z.string({ error }), { error }).min(1, { error });
}

/** Environment variables of a process. */
export function variables() {
  const value = z
    .string({ error: 'expected text (in quotes where YAML would read a number)' })
    .regex(/^[^\0]*$/, { error: 'expected text without NUL' });
  return z.record(z.string().regex(/^[^=\0]+$/), value, {
    error: ({ code }) =>
      code === 'invalid_key' ? 'is no name for a variable' : 'expected a map of names to text',
  });
}

export function appUrl() {
  return parsed('an http:// or https:// URL without credentials, query or fragment', text =>
    /[?#]/.test(text) ? undefined : httpUrl(text),
  );
}

export function jwksUrl() {
  const what = 'an https:// URL (http:// for loopback only) without credentials or fragment';
  return parsed(what, text => {
    const url = text.includes('#') ? undefined : httpUrl(text);
    return url?.protocol === 'https:' || (url && isLoopbackHost(url.hostname)) ? url : undefined;
  });
}

// The raw text is looked at first: URL drops white space and forgives missing slashes.
function httpUrl(text: string): URL | undefined {
  const url = HTTP_URL.test(text) && URL.parse(text);
  return url && url.username === '' && url.password === '' ? url : undefined;
}

export function databaseUrl() {
  return z.string({ error: expected(DATABASE_URL) }).transform((text, context): DatabaseUrl => {
    const read = parseDatabaseUrl(text);
    if (!('faults' in read)) return read;
    for (const message of read.faults) context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}

const ENCRYPTION_KEY = `32 bytes as 64 hex digits or as base64, in quotes; make one with: ${MAKE_KEY}`;

/** One, or a list of several that are different, or the same as text with commas. */
export function encryptionKeys() {
  const error = expected(ENCRYPTION_KEY);
  return z
    .union([z.string(), z.array(z.unknown()).min(1, { error })], { error })
    .transform((given, context) => {
      const items = typeof given === 'string' ? given.split(',').map(part => part.trim()) : given;
      const tell = (index: number, message: string) => {
        context.addIssue({ code: 'custom', message, path: items.length === 1 ? [] : [index] });
      };
      const keys = new Map<string, Uint8Array>();
      for (const [index, item] of items.entries()) {
        const key = typeof item === 'string' ? parseEncryptionKey(item) : undefined;
        const name = Buffer.from(key ?? []).toString('hex');
        if (key === undefined) tell(index, `expected ${ENCRYPTION_KEY}`);
        else if (keys.has(name)) tell(index, 'is the same key as one before it');
        else keys.set(name, key);
      }
      return [...keys.values()];
    });
}

/** How many processes; `auto` is one for each processor that this one may use. */
export function workers(max: number) {
  const error = expected(`a whole number from 1 to ${max}, or auto`);
  const fromText = (value: unknown) => {
    if (value === 'auto') return Math.min(availableParallelism(), max);
    return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : value;
  };
  return z.preprocess(fromText, z.int({ error }).min(1, { error }).max(max, { error }));
}
