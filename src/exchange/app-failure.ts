/**
 * What a failed exchange with an app means to the caller, and to the receiver.
 */
import { Problem, type ProblemCode } from '../errors.ts';

/** What a lost connection looks like, which the end of the app's process may have caused. */
const OF_A_PROCESS: ReadonlySet<ProblemCode> = new Set([
  'app_unreachable',
  'app_bad_answer',
  'answer_cut_off',
]);

export function mayBeCrash({ code }: Problem): boolean {
  return OF_A_PROCESS.has(code);
}

/** `begun`: the answer had. */
export function appFailure(error: Error & { code?: string }, begun: boolean): Problem {
  if (error instanceof Problem) return error;
  switch (error.code) {
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return new Problem('app_timeout');
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_NOT_SUPPORTED':
      return new Problem('bad_request', 'The request has a header that cannot be passed on');
    case 'UND_ERR_DESTROYED':
    case 'UND_ERR_CLOSED':
      return new Problem('shutting_down', 'The service stopped before the app had answered');
    case 'UND_ERR_HEADERS_OVERFLOW':
      return new Problem('app_bad_answer', 'The header section of the answer is too large');
    default:
      if (begun) return new Problem('answer_cut_off');
      return error.name === 'HTTPParserError'
        ? new Problem('app_bad_answer', 'The app did not answer in valid HTTP')
        : new Problem('app_unreachable');
  }
}
