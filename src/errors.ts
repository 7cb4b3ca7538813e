/**
 * The closed set of errors that the service itself gives a caller (RFC 9457), each with its status and its
 * text, and the errors that end a command.
 */

interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** The app failed a call that it was given: the receiver is told as well. */
  readonly ofApp?: true;
}

export const PROBLEMS = {
  bad_request: { status: 400, title: 'The request is malformed' },
  bad_request_target: { status: 400, title: 'The request target is not acceptable' },
  invalid_webhook_endpoint: { status: 400, title: 'webhookEndpoint is not acceptable' },
  forbidden_target: { status: 400, title: 'The target of a delivery is at a forbidden address' },
  invalid_webhook_secret: { status: 400, title: 'X-Webhook-Secret is not acceptable' },
  secret_required: { status: 400, title: 'This project requires X-Webhook-Secret with webhookEndpoint' },
  invalid_idempotency_key: { status: 400, title: 'Idempotency-Key is not acceptable' },
  invalid_query: { status: 400, title: 'The query is not acceptable' },
  invalid_body: { status: 400, title: 'The body of the request is not acceptable' },
  invalid_parameters: { status: 400, title: 'The body must be a JSON object of parameters' },
  unauthorized: { status: 401, title: 'A valid token is required' },
  wrong_project: { status: 403, title: 'The token belongs to another project' },
  foreign_origin: { status: 403, title: 'The request comes from a page of another site' },
  not_found: { status: 404, title: 'Nothing is served at this path' },
  app_not_found: { status: 404, title: 'The project has no such app' },
  run_not_found: { status: 404, title: 'The project has no such run' },
  delivery_not_found: { status: 404, title: 'The project has no such delivery' },
  job_not_found: { status: 404, title: 'The project has no such job' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  run_ended: { status: 409, title: 'The run has ended already' },
  delivery_pending: { status: 409, title: 'The delivery is under way already' },
  delivery_settled: { status: 409, title: 'The delivery has ended already' },
  request_too_large: { status: 413, title: 'The body of the request is too large' },
  expectation_failed: { status: 417, title: 'The expectation cannot be met' },
  idempotency_key_reused: { status: 422, title: 'The Idempotency-Key came with another request before' },
  too_many_pending: { status: 429, title: 'The project has too many pending deliveries and runs' },
  app_busy: { status: 429, title: 'The app has all the calls that it can take' },
  too_many_logins: { status: 429, title: 'Too many logins have failed' },
  headers_too_large: { status: 431, title: 'The header section is too large' },
  cancelled: { status: 499, title: 'The run was cancelled', ofApp: true },
  internal_error: { status: 500, title: 'The service failed' },
  app_unreachable: { status: 502, title: 'The app could not be reached', ofApp: true },
  app_crashed: { status: 502, title: 'The process of the app ended during the call', ofApp: true },
  app_bad_answer: { status: 502, title: 'The app gave an answer that cannot be passed on', ofApp: true },
  answer_cut_off: { status: 502, title: 'The app broke off its answer', ofApp: true },
  interrupted: { status: 502, title: 'The service ended during the run, too many times', ofApp: true },
  secret_unreadable: { status: 500, title: 'The key that the request was sealed with is missing' },
  store_unavailable: { status: 503, title: 'Nothing can be stored at the moment' },
  keys_unavailable: { status: 503, title: 'The keys of the project cannot be fetched at the moment' },
  shutting_down: { status: 503, title: 'The service is stopping', ofApp: true },
  app_timeout: { status: 504, title: 'The app did not answer in time', ofApp: true },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof PROBLEMS;

/** An error of the service itself, told to the caller as `application/problem+json`. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly headers: readonly string[];

  /** `headers` is a flat list of names and values that the answer carries besides. */
  constructor(code: ProblemCode, detail?: string, headers: readonly string[] = []) {
    super(detail ?? PROBLEMS[code].title);
    this.name = 'Problem';
    this.code = code;
    this.headers = headers;
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }

  /** True where the app failed a call that it was given, which its receiver is to learn as well. */
  get ofApp(): boolean {
    return 'ofApp' in PROBLEMS[this.code];
  }

  body(runId: string): string {
    return JSON.stringify({
      type: 'about:blank',
      title: PROBLEMS[this.code].title,
      status: this.status,
      detail: this.message,
      code: this.code,
      run_id: runId,
      ...(this.ofApp && { error: { type: this.code, message: this.message } }),
    });
  }
}

/** Wrong usage or configuration: the command prints the message and exits 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The service cannot start or go on, for a reason outside it: the command prints the message and exits 1. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Why a listener cannot start, for the operator. */
export function listenError(error: NodeJS.ErrnoException, at: { host: string; port: number }): StartError {
  const place = at.host.includes(':') ? `[${at.host}]:${at.port}` : `${at.host}:${at.port}`;
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: 'the port is taken',
    EACCES: 'not permitted',
    EADDRNOTAVAIL: 'this machine has no such address',
    ENOTFOUND: 'there is no such host',
  };
  return new StartError(`cannot listen on ${place}: ${why[error.code ?? ''] ?? error.message}`);
}
