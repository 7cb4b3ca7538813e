/**
 * The OpenAPI document of the management API, made from the routes themselves.
 */
import { OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi';
import { ADMIN_PREFIX, type MountName, pathOf, ROUTES, type RouteName } from './mounts.ts';
import { deliveryWebhook } from './webhook-contract.ts';

const DESCRIPTION = `\
Looks after deliveries, runs and apps. The same routes are there twice.

On the listener that takes calls, below \`/v4/{project_id}/\`, with the same token as a call of that project needs. \
It sees that project alone.

On the admin listener, below \`/api/v1/\`, with the admin token, which sees every project, or with the token of a \
project, which sees that one alone. Where no admin token is configured, none is needed: the listener is then \
reached from its own machine alone.

What belongs to another project is answered as if it were not there.

A run begins as a call with \`async=true\` in its query, to any app of the project: \
\`POST /v4/{project_id}/{app}/{function}?async=true\`. It is answered with 202 and \`{"run_id": …}\` as soon as it is \
on disk, and is carried out in the background. Its answer is kept for whoever asks here, and goes to \
\`webhookEndpoint\` where the call gave one.`;

const SERVERS: Readonly<Record<MountName, { url: string; description: string }>> = {
  project: { url: 'http://127.0.0.1:8080', description: 'The listener of the calls (`listen`)' },
  admin: { url: 'http://127.0.0.1:8081', description: 'The admin listener (`admin`)' },
};

const projectId = z.string().openapi({ example: 'p-demo', description: 'The project that the token is for' });

/** As text, ready to be kept in a file. */
export function openApiDocument(version: string): string {
  const app = new OpenAPIHono();
  const registry = app.openAPIRegistry;
  registry.registerComponent('securitySchemes', 'projectToken', {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Made with the keys of a project, whose id is its claim `project_id`',
  });
  registry.registerComponent('securitySchemes', 'adminToken', {
    type: 'http',
    scheme: 'bearer',
    description: '`adminToken` of the configuration',
  });
  for (const mount of ['project', 'admin'] as const) {
    for (const name of Object.keys(ROUTES) as RouteName[]) {
      for (const route of ROUTES[name]) registry.registerPath(mounted(mount, name, route));
    }
  }
  registry.registerPath(ofDocument());
  registry.registerWebhook(deliveryWebhook);
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Afterword', version, description: DESCRIPTION },
    servers: Object.values(SERVERS),
  });
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** A route as it is at one of its two places. */
function mounted(mount: MountName, name: RouteName, route: RouteConfig): RouteConfig {
  const { request = {}, operationId } = route;
  const own = request.params instanceof z.ZodObject ? request.params.shape : {};
  const params = mount === 'project' ? { project_id: projectId, ...own } : own;
  return {
    ...route,
    path: pathOf(mount, name, route),
    tags: [mount === 'project' ? 'One project' : 'All projects'],
    operationId: mount === 'project' ? operationId! : `${operationId}Admin`,
    servers: [SERVERS[mount]],
    request: { ...request, params: z.object(params) },
    security: mount === 'project' ? [{ projectToken: [] }] : [{ adminToken: [] }, { projectToken: [] }],
  };
}

function ofDocument(): RouteConfig {
  return {
    method: 'get',
    path: `${ADMIN_PREFIX}openapi.json`,
    operationId: 'getOpenApiDocument',
    summary: 'This document',
    tags: ['All projects'],
    servers: [SERVERS.admin],
    security: [{ adminToken: [] }, { projectToken: [] }],
    responses: {
      200: { description: 'OpenAPI 3.1', content: { 'application/json': { schema: z.looseObject({}) } } },
    },
  };
}
