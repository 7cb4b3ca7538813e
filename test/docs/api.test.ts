/**
 * Keeps docs/api.md true: its tables are those of the routes.
 */
import { expect, it } from 'vitest';
import { DeliveryListQuery } from '../../src/api/delivery-contract.ts';
import { ADMIN_PREFIX, pathOf, ROUTES, type RouteName } from '../../src/api/mounts.ts';
import { WINDOWS } from '../../src/api/stats-contract.ts';
import { run } from '../commands/run.ts';
import { namesIn, readDocument, sectionOf, tableOf } from './markdown.ts';

const text = readDocument('docs/api.md');

it('lists every route, and no other', () => {
  const told = tableOf(sectionOf(text, 'Routes'), 'route').flatMap(([route]) => namesIn(route!));
  const real = (Object.keys(ROUTES) as RouteName[]).flatMap(name =>
    ROUTES[name].map(route => `${route.method.toUpperCase()} ${pathOf('admin', name, route)}`),
  );
  expect(told.sort()).toEqual([...real, `GET ${ADMIN_PREFIX}openapi.json`].sort());
});

it('lists every parameter of a list, and no other', () => {
  const told = tableOf(sectionOf(text, 'Finding deliveries'), 'parameter').flatMap(([name]) =>
    namesIn(name!),
  );
  expect(told.sort()).toEqual(Object.keys(DeliveryListQuery.shape).sort());
});

it('names options that the commands have', async () => {
  const lines = sectionOf(text, 'From the command line').matchAll(/^afterword (deliveries \w+) (.*)$/gm);
  const named = [...lines].map(([, command, rest]) => [command!, rest!.match(/--[\w-]+/g) ?? []] as const);
  expect(named.length).toBeGreaterThan(5);
  for (const [command, options] of named) {
    const { stdout } = await run([...command.split(' '), '--help']);
    expect(options.filter(option => !stdout.includes(`${option} `))).toEqual([]);
  }
});

it('names every window of the numbers', () => {
  const told = namesIn(sectionOf(text, 'Numbers'));
  for (const window of Object.keys(WINDOWS)) expect(told.join(' ')).toContain(window);
});
