/** Whether calls are traced, and how, by the variables of OpenTelemetry. */
import { describe, expect, it } from 'vitest';
import { readTracing } from '../../src/config/tracing.ts';
import type { Environment } from '../../src/config/variables.ts';
import { createFolder } from './folder.ts';

function read(env: Environment) {
  const warnings: string[] = [];
  return { tracing: readTracing(env, warnings), warnings };
}

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const ON = { [ENDPOINT]: 'http://collector:4318' };

describe('where spans are sent to', () => {
  it.each([
    ['nothing asks for it', {}, undefined],
    ['an empty variable', { [ENDPOINT]: ' ' }, undefined],
    ['an endpoint', ON, 'http://collector:4318/v1/traces'],
    ['an endpoint with a path', { [ENDPOINT]: 'https://c/otlp/' }, 'https://c/otlp/v1/traces'],
    ['one for traces alone', { ...ON, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://t/x' }, 'http://t/x'],
    ['the exporter alone', { OTEL_TRACES_EXPORTER: 'otlp' }, 'http://localhost:4318/v1/traces'],
    ['no exporter', { ...ON, OTEL_TRACES_EXPORTER: 'none' }, undefined],
    ['switched off', { ...ON, OTEL_SDK_DISABLED: 'TRUE' }, undefined],
    ['not switched off', { ...ON, OTEL_SDK_DISABLED: 'false' }, 'http://collector:4318/v1/traces'],
  ])('%s', (_, env, endpoint) => {
    const { tracing, warnings } = read(env);
    expect(tracing?.endpoint).toBe(endpoint);
    expect(warnings).toEqual([]);
  });
});

describe('what means nothing is told', () => {
  it.each([
    [{ ...ON, OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER: expected otlp or none', false],
    [{ [ENDPOINT]: 'collector:4318' }, `${ENDPOINT}: expected an http: or https: URL`, false],
    [{ ...ON, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL: has no effect', true],
    [{ ...ON, OTEL_TRACES_SAMPLER: 'some' }, 'OTEL_TRACES_SAMPLER: expected one of always_on', true],
    [{ ...ON, OTEL_TRACES_SAMPLER_ARG: '2' }, 'OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1', true],
    [{ ...ON, OTEL_BSP_MAX_QUEUE_SIZE: 'x' }, 'OTEL_BSP_MAX_QUEUE_SIZE: expected a whole number', true],
  ])('%j', (env, warning, traced) => {
    const { tracing, warnings } = read(env);
    expect(warnings).toEqual([expect.stringContaining(warning)]);
    expect(tracing !== undefined).toBe(traced);
  });
});

it('has the defaults of OpenTelemetry, and what is given over them', () => {
  const batch = { scheduledDelayMillis: 5000, maxExportBatchSize: 512 };
  expect(read(ON).tracing).toMatchObject({
    sampler: { name: 'parentbased_always_on', ratio: 1 },
    batch: { ...batch, maxQueueSize: 2048 },
  });
  const given = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' };
  expect(read({ ...ON, ...given, OTEL_BSP_MAX_QUEUE_SIZE: '9000' }).tracing).toMatchObject({
    sampler: { name: 'traceidratio', ratio: 0.25 },
    batch: { ...batch, maxQueueSize: 9000 },
  });
});

it('is part of the configuration, with its warnings', () => {
  const { config, warnings } = createFolder().load({ ...ON, OTEL_TRACES_SAMPLER: 'some' });
  expect(config.tracing?.endpoint).toBe('http://collector:4318/v1/traces');
  expect(warnings).toHaveLength(1);
  expect(createFolder().load({}).config).not.toHaveProperty('tracing');
});
