/**
 * What all routes of the API have in common: what they know of the request, and how it is refused.
 */
import type { ServerResponse } from 'node:http';
import { OpenAPIHono, type RouteConfig, type z } from '@hono/zod-openapi';
import { Problem, type ProblemCode } from '../errors.ts';

/** A request whose token has been found to be good. */
export interface ApiCall {
  /** The only project that it may see; undefined where it may see all. */
  readonly projectId: string | undefined;
  /** Of the request itself. */
  readonly runId: string;
  /** The service stops: whoever waits is to answer with what there is. */
  readonly signal: AbortSignal;
}

export interface ApiEnv {
  readonly Bindings: {
    readonly call: ApiCall;
    /** For answers that are streamed. */
    readonly res: ServerResponse;
  };
}

export type Router = OpenAPIHono<ApiEnv>;

/** `missing`: what a name in the path stands for that nothing can have. */
export function createRouter(missing: ProblemCode): Router {
  return new OpenAPIHono<ApiEnv>({
    defaultHook(checked) {
      if (checked.success) return;
      if (checked.target === 'param') throw new Problem(missing);
      throw new Problem('invalid_query', `The query is not acceptable: ${mistakes(checked.error)}`);
    },
  });
}

/** The project that a request is about: its own, or the one that it names, where it may; undefined: all. */
export function projectOf({ projectId }: ApiCall, named: string | undefined): string | undefined {
  if (projectId !== undefined && named !== undefined && named !== projectId)
    throw new Problem('wrong_project');
  return projectId ?? named;
}

/** All at once, so that nobody has to find them out one by one. */
export function mistakes({ issues }: z.core.$ZodError): string {
  const texts = issues.flatMap(issue =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map(key => `there is no parameter ${JSON.stringify(key)}`)
      : `${issue.path.join('.')} ${issue.message}`,
  );
  return [...new Set(texts)].join('; ');
}

/** The answer of a route that went well. */
export const answerOf = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});

/** What a route reads by itself and the document tells of: nothing of it is checked before its handler. */
type OwnReading = Pick<NonNullable<RouteConfig['request']>, 'body' | 'headers'>;

export function described(route: RouteConfig, reading: OwnReading): RouteConfig {
  return { ...route, request: { ...route.request, ...reading } };
}
