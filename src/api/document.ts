/**
 * The OpenAPI document of the management API, made from the routes themselves.
 */
import { OpenAPIHono, z } from '@hono/zod-openapi';
import { RUN_ROUTES } from './run-routes.ts';

const DESCRIPTION = `\
Looks after the runs of a project on the listener that takes its calls, with the same token as a call needs.

A run begins as a call with \`async=true\` in its query, to any app of the project: \
\`POST /v4/{project_id}/{app}/{function}?async=true\`. It is answered with 202 and \`{"run_id": …}\` as soon as it is \
on disk, and is carried out in the background. Its answer is kept for whoever asks here, and goes to \
\`webhookEndpoint\` where the call gave one.`;

const projectId = z.string().openapi({ example: 'p-demo', description: 'The project that the token is for' });

/** As text, ready to be kept in a file. */
export function openApiDocument(version: string): string {
  const app = new OpenAPIHono();
  const { name } = app.openAPIRegistry.registerComponent('securitySchemes', 'projectToken', {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
  });
  for (const route of RUN_ROUTES) {
    const { request } = route;
    const own = 'params' in request ? request.params.shape : {};
    app.openAPIRegistry.registerPath({
      ...route,
      path: `/v4/{project_id}/_runs${route.path === '/' ? '' : route.path}`,
      request: { ...request, params: z.object({ project_id: projectId, ...own }) },
      security: [{ [name]: [] }],
    });
  }
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Afterword', version, description: DESCRIPTION },
  });
  return `${JSON.stringify(document, undefined, 2)}\n`;
}
