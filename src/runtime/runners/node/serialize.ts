/**
 * A function's result as JSON, by JSON's own rules (`toJSON` is honoured, undefined members are left out,
 * undefined items are null), except that nothing else is lost in silence: what JSON.stringify would turn
 * into null or `{}`, leave out or choke on is refused, with the path of the offending value.
 */
import { UnserializableResult } from './error.ts';

/** Far below what the stack can bear. */
const MAX_DEPTH = 1_000;
const IDENTIFIER = /^[\p{L}_$][\p{L}\p{N}_$]*$/u;

/** Bytes are a result of their own kind, and not JSON. */
export function isBytes(value: unknown): value is Uint8Array | ArrayBuffer {
  return value instanceof Uint8Array || value instanceof ArrayBuffer;
}

/** `path` is what the value is called in the message of a refusal. */
export function toJson(value: unknown, path = 'result'): string {
  // Most results are plain data, of which a look is enough: checking each value within JSON.stringify
  // takes several times as long.
  return isPlain(value, 0) ? (JSON.stringify(value) ?? 'null') : toJsonChecked(value, path);
}

/** Nothing in it but what JSON holds as it is. */
function isPlain(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object')
    return typeof value === 'string' || typeof value === 'boolean' || value === undefined;
  if (value === null) return true;
  if (depth >= MAX_DEPTH) return false;
  if (Array.isArray(value)) return value.every(item => isPlain(item, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const key in value) {
    if (!isPlain((value as Record<string, unknown>)[key], depth + 1)) return false;
  }
  return true;
}

function toJsonChecked(value: unknown, path: string): string {
  // The objects around the value that is being looked at, outermost first, and the keys that lead to it.
  const around: object[] = [];
  const keys: string[] = [];

  const pathTo = (end: number): string =>
    path +
    keys
      .slice(1, end)
      .map((key, index) => step(around[index + 1]!, key))
      .join('');
  const refuse = (what: string): never => {
    throw new UnserializableResult(`${pathTo(keys.length)} ${what}, which JSON cannot hold`);
  };

  function check(this: object, key: string, item: unknown): unknown {
    while (around.length > 0 && around.at(-1) !== this) around.pop();
    if (around.length === 0) around.push(this);
    keys.length = around.length - 1;
    keys.push(key);
    if (typeof item !== 'object' || item === null) {
      const what = flawOfPrimitive(item);
      return what === undefined ? item : refuse(what);
    }
    const what = flawOfObject(item);
    if (what !== undefined) refuse(what);
    const at = around.indexOf(item);
    if (at >= 0) refuse(`refers back to ${pathTo(at)}`);
    if (around.length > MAX_DEPTH)
      throw new UnserializableResult(`${path} is nested more than ${MAX_DEPTH} levels deep`);
    around.push(item);
    return item;
  }
  return JSON.stringify(value, check) ?? 'null';
}

function step(holder: object, key: string): string {
  if (Array.isArray(holder)) return `[${key}]`;
  return IDENTIFIER.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

function flawOfPrimitive(value: unknown): string | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : `is ${value}`;
    case 'bigint':
      return 'is a BigInt';
    case 'function':
    case 'symbol':
      return `is a ${typeof value}`;
    default:
      return undefined;
  }
}

/** JSON would make them objects without members, or with one for each byte. */
const EMPTIED = [Map, Set, Promise, ArrayBuffer];

function flawOfObject(value: object): string | undefined {
  if (!ArrayBuffer.isView(value) && !EMPTIED.some(each => value instanceof each)) return undefined;
  const { name } = value.constructor;
  return `is ${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`;
}
