/**
 * What all routes of the API have in common: what they know of the request, and how it is refused.
 */
import type { ServerResponse } from 'node:http';
import { OpenAPIHono, type z } from '@hono/zod-openapi';
import { Problem } from '../errors.ts';

/** A request whose token has been found to be good. */
export interface ApiCall {
  readonly projectId: string;
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

export function createRouter(): Router {
  return new OpenAPIHono<ApiEnv>({
    defaultHook(checked) {
      if (checked.success) return;
      // The only thing that a path names is a run, and a name that no run can have is that of no run.
      if (checked.target === 'param') throw new Problem('run_not_found');
      throw new Problem('invalid_query', `The query is not acceptable: ${mistakes(checked.error)}`);
    },
  });
}

/** All at once, so that nobody has to find them out one by one. */
function mistakes({ issues }: z.core.$ZodError): string {
  const texts = issues.flatMap(issue =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map(key => `there is no parameter ${JSON.stringify(key)}`)
      : `${issue.path.join('.')} ${issue.message}`,
  );
  return [...new Set(texts)].join('; ');
}
