/**
 * A configuration on its way to a worker, which has it from the primary and not from files that may have
 * changed since: what cannot be sent to another process is written as something that can, and the limits that
 * hold for the machine are divided.
 */
import type { Config } from '../config/config.ts';

/** Holds nothing that cannot be cloned. */
export interface PackedConfig {
  readonly packed: unknown;
}

/** A URL is an object with hidden parts, and a check is code: these stand for them. */
interface StandIn {
  readonly '\0': 'url' | 'any_name';
  readonly href?: string;
}

/** The check of `sslmode=verify-ca`, the only code that a configuration holds: any name will do. */
const anyName = (): undefined => undefined;

export function packConfig(config: Config): PackedConfig {
  return { packed: mapLeaves(config, pack) };
}

export function unpackConfig({ packed }: PackedConfig): Config {
  return mapLeaves(packed, unpack) as Config;
}

/** What one of several workers does of what the configuration allows the machine. */
export function shareOf(config: Config, workers: number): Config {
  const share = (limit: number): number => Math.max(1, Math.floor(limit / workers));
  const { webhooks } = config;
  const { concurrency, perTarget } = webhooks;
  const divided = { concurrency: share(concurrency), perTarget: share(perTarget) };
  return { ...config, webhooks: { ...webhooks, ...divided } };
}

function pack(value: unknown): unknown {
  if (value instanceof URL) return { '\0': 'url', href: value.href } satisfies StandIn;
  if (typeof value === 'function') return { '\0': 'any_name' } satisfies StandIn;
  return undefined;
}

function unpack(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('\0' in value)) return undefined;
  const { '\0': kind, href } = value as StandIn;
  return kind === 'url' ? new URL(href!) : anyName;
}

/** A copy in which `replace` has replaced what it gives something for. */
function mapLeaves(value: unknown, replace: (value: unknown) => unknown): unknown {
  const replaced = replace(value);
  if (replaced !== undefined) return replaced;
  const map = (each: unknown): unknown => mapLeaves(each, replace);
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  if (value instanceof Map) return new Map([...value].map(([key, each]) => [key, map(each)]));
  if (Array.isArray(value)) return value.map(map);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, map(each)]));
}
