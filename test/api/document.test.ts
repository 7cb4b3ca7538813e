/**
 * The OpenAPI document: the one in the docs is the one that the routes make, and what it tells of is there.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openApiDocument } from '../../src/api/document.ts';
import { packageVersion } from '../../src/version.ts';
import { openRig, PROJECT } from './rig.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
}

const document = JSON.parse(openApiDocument(packageVersion())) as {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

it('lies in the docs (npm run openapi writes it)', () => {
  const file = join(import.meta.dirname, '..', '..', 'docs', 'openapi.json');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(document);
});

it('tells of every route', () => {
  expect(document.openapi).toBe('3.1.0');
  expect(operations.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /v4/{project_id}/_runs',
    'GET /v4/{project_id}/_runs/{run_id}',
    'POST /v4/{project_id}/_runs/{run_id}/cancel',
  ]);
});

it.each(operations)('$method $path is there, and has the parameters of its path', async each => {
  const { method, path, operation } = each;
  const named = operation.parameters.filter(parameter => parameter.in === 'path').map(({ name }) => name);
  expect(named).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
  const rig = await openRig();
  const run = await rig.insert();
  const url = path.replace('{project_id}', PROJECT).replace('{run_id}', run.runId);
  const waiting = rig.get(url, { method });
  rig.stop();
  expect((await waiting).status).toBe(200);
});
