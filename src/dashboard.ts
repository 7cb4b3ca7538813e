/**
 * The files of the dashboard, as the admin listener gives them out: read once, kept in memory, plain and
 * compressed. They hold nothing that is secret; what the page shows, it asks of the management API.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Logger } from './log.ts';

export interface DashboardOptions {
  /** Where it was built. */
  readonly dir?: string;
  readonly log: Logger;
}

export interface Dashboard {
  /** Reads the files. Where that fails, the page says so in place of the dashboard. */
  load(): Promise<void>;
  /** Whether there is a file or a page at a path. */
  has(path: string): boolean;
  serve(req: Pick<IncomingMessage, 'headers'>, res: ServerResponse, path: string): void;
}

/** Seen from src/ and from dist/ alike. */
const BUILT = fileURLToPath(new URL('../dashboard/dist', import.meta.url));
const INDEX = '/index.html';

/** Places within the dashboard: the same file, which looks at its address. */
const PAGES = /^\/(?:(?:deliveries|runs)(?:\/.*)?|apps|health|login)?$/;

/** A file of another kind is not given out. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

/** No script, style or picture from elsewhere or within the page, no connection elsewhere, and no frame around it. */
const SAFETY = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** The build names what lies in assets/ by its content; everything else keeps its name when it changes. */
const cacheControlOf = (path: string): string =>
  path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache';

interface Form {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>> & { readonly ETag: string };
}

interface Served {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Form;
  /** Where it is shorter. */
  readonly gzipped: Form | undefined;
}

export function createDashboard({ dir = BUILT, log }: DashboardOptions): Dashboard {
  let files: ReadonlyMap<string, Served> = new Map();
  return {
    async load() {
      try {
        files = await readAll(dir);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
        log.warn({ err: error as Error }, 'the dashboard cannot be read');
      }
    },
    has: path => files.has(path) || PAGES.test(path),
    serve(req, res, path) {
      const served = files.get(PAGES.test(path) ? INDEX : path);
      if (served === undefined) sendMissing(res);
      else send(req, res, served);
    },
  };
}

async function readAll(dir: string): Promise<Map<string, Served>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const names = entries
    .filter(entry => entry.isFile() && extname(entry.name) in CONTENT_TYPES)
    .map(entry => join(entry.parentPath, entry.name));
  const read = async (file: string): Promise<[string, Served]> => {
    const path = `/${relative(dir, file).split(sep).join('/')}`;
    return [path, await servedOf(path, await readFile(file))];
  };
  return new Map(await Promise.all(names.map(read)));
}

async function servedOf(path: string, bytes: Buffer): Promise<Served> {
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  const compressed = await promisify(gzip)(bytes, { level: 9 });
  return {
    headers: {
      ...SAFETY,
      'Content-Type': CONTENT_TYPES[extname(path)]!,
      'Cache-Control': cacheControlOf(path),
      Vary: 'Accept-Encoding',
    },
    plain: { bytes, headers: { ETag: `"${digest}"` } },
    // A strong tag is of the very bytes (RFC 9110, section 8.8.3.3).
    gzipped:
      compressed.length < bytes.length
        ? { bytes: compressed, headers: { ETag: `"${digest}-gzip"`, 'Content-Encoding': 'gzip' } }
        : undefined,
  };
}

function send({ headers }: Pick<IncomingMessage, 'headers'>, res: ServerResponse, served: Served): void {
  const gzipped = takesGzip(headers['accept-encoding']) ? served.gzipped : undefined;
  const form = gzipped ?? served.plain;
  const known = { ...served.headers, ...form.headers };
  if (isKnown(headers['if-none-match'], form.headers.ETag)) {
    res.writeHead(304, known).end();
    return;
  }
  res.writeHead(200, { ...known, 'Content-Length': form.bytes.length }).end(form.bytes);
}

function sendMissing(res: ServerResponse): void {
  res.writeHead(503, {
    ...SAFETY,
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  res.end('the dashboard is not built: run `npm run dashboard`, then start the service again\n');
}

/** RFC 9110, section 12.5.3: named, or meant by `*`, and not refused by a weight of 0. */
function takesGzip(accepted = ''): boolean {
  const codings = accepted.split(',').map(coding => coding.replaceAll(/\s/g, '').toLowerCase().split(';'));
  const meant = codings.find(([name]) => name === 'gzip') ?? codings.find(([name]) => name === '*');
  return meant !== undefined && !/^q=0(?:\.0*)?$/.test(meant[1] ?? '');
}

/** RFC 9110, section 13.1.2: compared weakly, since a proxy may have weakened what it was given. */
function isKnown(tags: string | undefined, tag: string): boolean {
  if (tags === undefined) return false;
  return tags.split(',').some(each => ['*', tag].includes(each.trim().replace(/^W\//, '')));
}
