/**
 * The table of all routes: what lies below each name, and the two places where a name is mounted, for one
 * project on the listener of the calls and for all of them on the admin listener.
 */
import type { RouteConfig } from '@hono/zod-openapi';
import { APP_ROUTES } from './app-routes.ts';
import { BULK_ROUTES } from './bulk-routes.ts';
import { DELIVERY_ROUTES } from './delivery-routes.ts';
import { RUN_ROUTES } from './run-routes.ts';
import { STATS_ROUTES } from './stats-routes.ts';
import { STREAM_ROUTES } from './stream-routes.ts';

/** Names in the order in which they are tried: the longer before what would take it for an id. */
export const ROUTES = {
  'deliveries/stream': STREAM_ROUTES,
  'deliveries/redeliver': BULK_ROUTES,
  deliveries: DELIVERY_ROUTES,
  runs: RUN_ROUTES,
  stats: STATS_ROUTES,
  apps: APP_ROUTES,
} as const satisfies Record<string, readonly RouteConfig[]>;

export type RouteName = keyof typeof ROUTES;

export const ADMIN_PREFIX = '/api/v1/';

/** Where a name is mounted, as the OpenAPI document writes paths. */
export const MOUNTS = {
  project: (name: string) => `/v4/{project_id}/_${name}`,
  admin: (name: string) => `${ADMIN_PREFIX}${name}`,
} as const;

export type MountName = keyof typeof MOUNTS;

/** The whole path of a route. */
export function pathOf(mount: MountName, name: RouteName, route: Pick<RouteConfig, 'path'>): string {
  return MOUNTS[mount](name) + (route.path === '/' ? '' : route.path);
}
