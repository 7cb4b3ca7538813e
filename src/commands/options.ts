/**
 * Options that several commands share, and how the text of an option becomes a value.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../config/units.ts';
import { readTargetUrl } from '../delivery/target-url.ts';
import { UsageError } from '../errors.ts';
import { checkedKey } from '../idempotency-key.ts';
import type { Io } from './output.ts';

export function configOption(): Option {
  return new Option('-c, --config <file>', 'the configuration file');
}

export function jsonOption(): Option {
  return new Option('--json', 'print JSON');
}

export function timeoutOption(): Option {
  return new Option('--timeout <duration>', 'how long to wait')
    .argParser(durationArgument('1s', '7d'))
    .default(15 * 60_000, '15m');
}

/** How many of a list. */
export function limitOption(): Option {
  return new Option('--limit <number>', 'how many').argParser(integerArgument(1, 1_000_000)).default(50);
}

export function allOption(): Option {
  return new Option('--all', 'all that there are').conflicts('limit');
}

/** Milliseconds. */
export function durationArgument(min: string, max: string): (text: string) => number {
  return text => {
    const ms = parseDuration(text) ?? Number.NaN;
    if (ms >= parseDuration(min)! && ms <= parseDuration(max)!) return ms;
    throw new InvalidArgumentError(`It must be a duration from ${min} to ${max}, such as 5s, 10m or 1h30m.`);
  };
}

export function integerArgument(min: number, max: number): (text: string) => number {
  return text => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

export function httpUrlArgument(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError('It must be an address such as http://127.0.0.1:3000/hook.');
}

/** A target as a call may name it, and as it was given. */
export function targetArgument(text: string): string {
  const target = readTargetUrl(text);
  if (!('wrong' in target)) return text;
  throw new InvalidArgumentError(`It ${target.wrong}.`);
}

export function idempotencyKeyArgument(text: string): string {
  try {
    return checkedKey(text);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
}

/** The bytes of a file that an option names. */
export function readOptionFile(io: Io, option: string, file: string): Buffer {
  try {
    return readFileSync(resolve(io.cwd, file));
  } catch (error) {
    throw new UsageError(`${option}: ${(error as Error).message}`);
  }
}
