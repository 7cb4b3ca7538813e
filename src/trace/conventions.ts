/**
 * What the semantic conventions of OpenTelemetry for HTTP have spans say, with a few attributes of our own
 * (`afterword.*`): as far as it is the same for many spans, and so written once.
 */
import { type Attributes, type SpanKind, writeAttributes, writeBeginning, writeEnd } from './otlp.ts';
import { bytesOf, createShared, type Shared } from './shared.ts';

export interface Conventions {
  /** Of a call, by its method and `Host`. */
  readonly call: Shared<string, string>;
  /** Of an attempt, by the origin of its target. */
  readonly attempt: (origin: string) => Uint8Array;
  readonly run: Uint8Array;
  /** By project and app. */
  readonly app: Shared<string, string | undefined>;
  /** By status and error. */
  readonly end: Readonly<Record<SpanKind, Shared<number | undefined, string | undefined>>>;
}

const ROUTE = '/v4/{project_id}/{app}/{rest}';
const SAME_FOR_ALL_CALLS: Attributes = ['http.route', ROUTE, 'url.scheme', 'http'];

/** Those that the conventions know; a name that a caller makes up is none for a span. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE', 'CONNECT'];
const KNOWN: ReadonlySet<string> = new Set(METHODS);

/** From which status on an answer is an error: of the one who asked, or of the one who was asked. */
const FIRST_ERROR: Readonly<Record<SpanKind, number>> = { client: 400, server: 500, consumer: 500 };

const HTTP_PORT = 80;
const HTTPS_PORT = 443;

export function createConventions(): Conventions {
  const attempts = createShared((writer, origin: string, method: string) =>
    writeBeginning(writer, {
      name: method,
      kind: 'client',
      attributes: ['http.request.method', method, ...serverAt(origin)],
    }),
  );
  return {
    call: createShared((writer, method, host) =>
      writeBeginning(writer, {
        name: `${nameOf(method)} ${ROUTE}`,
        kind: 'server',
        attributes: [...methodOf(method), ...serverOf(host, HTTP_PORT), ...SAME_FOR_ALL_CALLS],
      }),
    ),
    attempt: origin => attempts(origin, 'POST'),
    run: bytesOf(writer => writeBeginning(writer, { name: 'run', kind: 'consumer', attributes: [] })),
    app: createShared((writer, projectId, app) => writeAttributes(writer, appOf(projectId, app))),
    end: { server: endOf('server'), client: endOf('client'), consumer: endOf('consumer') },
  };
}

function endOf(kind: SpanKind): Shared<number | undefined, string | undefined> {
  return createShared((writer, status, error) => {
    // What a caller did wrong is no error of the one who says so.
    const failed = status === undefined ? error !== undefined : status >= FIRST_ERROR[kind];
    const attributes: (string | number)[] = [];
    if (status !== undefined) attributes.push('http.response.status_code', status);
    if (failed || error !== undefined) attributes.push('error.type', error ?? String(status));
    writeEnd(writer, attributes, failed);
  });
}

function nameOf(method: string): string {
  return KNOWN.has(method) ? method : 'HTTP';
}

function methodOf(method: string): Attributes {
  if (KNOWN.has(method)) return ['http.request.method', method];
  return ['http.request.method', '_OTHER', 'http.request.method_original', method];
}

function serverAt(origin: string): Attributes {
  const host = origin.replace(/^https?:\/\//, '');
  return serverOf(host, origin.startsWith('https:') ? HTTPS_PORT : HTTP_PORT);
}

const HOST = /^(.+?)(?::(\d{1,5}))?$/;

/** Of a host with a port or without; a caller may have written anything there. */
function serverOf(host: string, usualPort: number): Attributes {
  const [, address, port] = HOST.exec(host) ?? [];
  return address === undefined ? [] : ['server.address', address, 'server.port', Number(port ?? usualPort)];
}

function appOf(projectId: string, app: string | undefined): Attributes {
  const project = ['afterword.project_id', projectId];
  return app === undefined ? project : [...project, 'afterword.app', app];
}
