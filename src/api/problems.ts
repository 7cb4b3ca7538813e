/**
 * Problems as the API answers and describes them (RFC 9457), from the one table that there is of them.
 */
import { z } from '@hono/zod-openapi';
import { PROBLEMS, type Problem, type ProblemCode } from '../errors.ts';

const MEDIA_TYPE = 'application/problem+json';

export const ProblemBody = z
  .object({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().openapi({ description: 'Stable: to be told apart by this' }),
    run_id: z.uuidv7().openapi({ description: 'Of this request: its X-Request-Id' }),
  })
  .openapi('Problem');

export function problemResponse(problem: Problem, runId: string): Response {
  const headers = new Headers({ 'Content-Type': MEDIA_TYPE });
  for (let i = 0; i < problem.headers.length; i += 2) {
    headers.set(problem.headers[i]!, problem.headers[i + 1]!);
  }
  return new Response(problem.body(runId), { status: problem.status, headers });
}

/** What every request can come to. */
const ALWAYS = ['unauthorized', 'wrong_project', 'internal_error', 'keys_unavailable'] as const;

/** The answers of a route that are problems, by status. */
export function problemAnswers(codes: readonly ProblemCode[]) {
  const byStatus = Map.groupBy([...codes, ...ALWAYS], code => PROBLEMS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        description: codes.map(code => `\`${code}\`: ${PROBLEMS[code].title}`).join('. '),
        content: { [MEDIA_TYPE]: { schema: ProblemBody } },
      },
    ]),
  );
}
