/**
 * The OpenAPI document: the one in the docs is the one that the routes make, and what it tells of is there.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openApiDocument } from '../../src/api/document.ts';
import { MOUNTS, type MountName, pathOf, ROUTES, type RouteName } from '../../src/api/mounts.ts';
import { packageVersion } from '../../src/version.ts';
import { namesIn, readDocument, sectionOf, tableOf } from '../docs/markdown.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly security: readonly object[];
  readonly servers: readonly object[];
  readonly requestBody?: object;
}

const document = JSON.parse(openApiDocument(packageVersion())) as {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: { readonly delivery: { readonly post: Operation } };
};

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

it('lies in the docs (npm run openapi writes it)', () => {
  const file = join(import.meta.dirname, '..', '..', 'docs', 'openapi.json');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(document);
});

it('tells of every route at both of its places, and of itself', () => {
  expect(document.openapi).toBe('3.1.0');
  const routes = (Object.keys(MOUNTS) as MountName[]).flatMap(mount =>
    (Object.keys(ROUTES) as RouteName[]).flatMap(name =>
      ROUTES[name].map(route => `${route.method.toUpperCase()} ${pathOf(mount, name, route)}`),
    ),
  );
  expect(operations.map(({ method, path }) => `${method} ${path}`)).toEqual([
    ...new Set([...routes, 'GET /api/v1/openapi.json']),
  ]);
});

it.each(operations)('$method $path has the parameters of its path, and a name of its own', each => {
  const { path, operation } = each;
  const { parameters = [], operationId } = operation;
  const named = parameters.filter(parameter => parameter.in === 'path').map(({ name }) => name);
  expect(named).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
  expect(operations.filter(({ operation: other }) => other.operationId === operationId)).toHaveLength(1);
});

it('names the tokens that each place takes', () => {
  for (const { path, operation } of operations) {
    const schemes = operation.security.flatMap(each => Object.keys(each));
    expect(schemes).toEqual(path.startsWith('/v4/') ? ['projectToken'] : ['adminToken', 'projectToken']);
    expect(operation.servers).toHaveLength(1);
  }
});

it('describes the request of a delivery as a webhook, with the headers that the contract has', () => {
  const { parameters, requestBody } = document.webhooks.delivery.post;
  const text = readDocument('docs/contract.md');
  const told = tableOf(sectionOf(text, 'The delivery request'), 'header').flatMap(([name]) => namesIn(name!));
  const ofHttp = ['Content-Type', 'User-Agent', 'Authorization'];
  const real = [...ofHttp, ...parameters!.map(({ name }) => name)].map(name => name.toLowerCase());
  expect(real).toEqual(expect.arrayContaining(told.map(name => name.toLowerCase())));
  expect(real.filter(name => !told.some(each => each.toLowerCase() === name))).toEqual(
    told.includes('traceparent') ? [] : ['traceparent'],
  );
  expect(requestBody).toMatchObject({ required: true });
});
