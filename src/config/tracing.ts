/**
 * Whether calls are traced, and how: by the variables that OpenTelemetry gives a meaning to (`OTEL_*`). As it
 * wants it, a value that means nothing is told and passed over; a mistake in tracing stops no service.
 */
import type { SamplerConfig, SamplerName, TracingConfig } from './config.ts';
import { tell } from './mistakes.ts';
import type { Environment } from './variables.ts';

interface Reading {
  readonly env: Environment;
  readonly warn: (variable: string, text: string) => void;
}

const TRACES_ENDPOINT = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const TRACES_HEADERS = 'OTEL_EXPORTER_OTLP_TRACES_HEADERS';
const TRACES_TIMEOUT = 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT';
const TIMEOUT = 'OTEL_EXPORTER_OTLP_TIMEOUT';
const DEFAULT_ENDPOINT = 'http://localhost:4318';
const TRACES_PATH = 'v1/traces';
/** The one protocol that there is. */
const PROTOCOL = 'http/protobuf';
/** What others make of the connection to a collector, and is not done here. */
const UNHEEDED = ['COMPRESSION', 'CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY'].flatMap(each => [
  `OTEL_EXPORTER_OTLP_${each}`,
  `OTEL_EXPORTER_OTLP_TRACES_${each}`,
]);

/** Undefined where nothing asks for it. */
export function readTracing(env: Environment, warnings: string[]): TracingConfig | undefined {
  const warn = (variable: string, text: string): void =>
    void warnings.push(tell({ source: variable }, [], text));
  const reading = { env, warn };
  if (!isAskedFor(reading)) return undefined;
  for (const variable of UNHEEDED) {
    if (given(env, variable) !== undefined) warn(variable, 'has no effect');
  }
  const endpoint = endpointOf(reading);
  if (endpoint === undefined) return undefined;
  return {
    endpoint,
    headers: { ...pairsOf(reading, 'OTEL_EXPORTER_OTLP_HEADERS'), ...pairsOf(reading, TRACES_HEADERS) },
    timeout: numberOf(reading, given(env, TRACES_TIMEOUT) ? TRACES_TIMEOUT : TIMEOUT, 10_000),
    resource: resourceOf(reading),
    sampler: samplerOf(reading),
    batch: {
      scheduledDelayMillis: numberOf(reading, 'OTEL_BSP_SCHEDULE_DELAY', 5_000),
      maxQueueSize: numberOf(reading, 'OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
      maxExportBatchSize: numberOf(reading, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
    },
  };
}

function isAskedFor({ env, warn }: Reading): boolean {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return false;
  const exporter = given(env, 'OTEL_TRACES_EXPORTER');
  if (exporter === undefined) return (given(env, TRACES_ENDPOINT) ?? given(env, ENDPOINT)) !== undefined;
  if (exporter !== 'otlp' && exporter !== 'none') {
    warn('OTEL_TRACES_EXPORTER', 'expected otlp or none; calls are not traced');
  }
  return exporter === 'otlp';
}

function endpointOf({ env, warn }: Reading): string | undefined {
  for (const variable of ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']) {
    const protocol = given(env, variable);
    if (protocol !== undefined && protocol !== PROTOCOL) warn(variable, `has no effect: it is ${PROTOCOL}`);
  }
  const own = given(env, TRACES_ENDPOINT);
  const variable = own === undefined ? ENDPOINT : TRACES_ENDPOINT;
  const url = own ?? `${(given(env, ENDPOINT) ?? DEFAULT_ENDPOINT).replace(/\/$/, '')}/${TRACES_PATH}`;
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return url;
  warn(variable, 'expected an http: or https: URL; calls are not traced');
  return undefined;
}

const SAMPLERS: readonly SamplerName[] = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
];

function samplerOf({ env, warn }: Reading): SamplerConfig {
  const named = given(env, 'OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const name = SAMPLERS.find(each => each === named);
  if (name === undefined) {
    warn('OTEL_TRACES_SAMPLER', `expected one of ${SAMPLERS.join(', ')}; every call is traced`);
  }
  const argument = given(env, 'OTEL_TRACES_SAMPLER_ARG') ?? '1';
  const ratio = Number(argument);
  const isRatio = ratio >= 0 && ratio <= 1;
  if (!isRatio) warn('OTEL_TRACES_SAMPLER_ARG', 'expected a number from 0 to 1; it is taken to be 1');
  return { name: name ?? 'parentbased_always_on', ratio: isRatio ? ratio : 1 };
}

function numberOf({ env, warn }: Reading, variable: string, usual: number): number {
  const number = Number(given(env, variable) ?? usual);
  if (Number.isSafeInteger(number) && number > 0) return number;
  warn(variable, `expected a whole number above 0; it is taken to be ${usual}`);
  return usual;
}

function resourceOf(reading: Reading): Record<string, string> {
  const name = given(reading.env, 'OTEL_SERVICE_NAME');
  return { ...pairsOf(reading, 'OTEL_RESOURCE_ATTRIBUTES'), ...(name && { 'service.name': name }) };
}

/** `name=value,name=value`, the values percent-encoded. */
function pairsOf({ env, warn }: Reading, variable: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const pair of given(env, variable)?.split(',') ?? []) {
    const [, name, value] = /^\s*([^=\s]+)\s*=(.*)$/.exec(pair) ?? [];
    const text = value === undefined ? undefined : decoded(value.trim());
    if (text === undefined) warn(variable, 'expected name=value, separated by commas; the rest is left out');
    else pairs[name!] = text;
  }
  return pairs;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** An empty variable is as good as none. */
function given(env: Environment, variable: string): string | undefined {
  return env[variable]?.trim() || undefined;
}
