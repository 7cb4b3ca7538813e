/**
 * An admin listener of its own, with nothing behind it: the API tells who asks.
 */
import { request } from 'node:http';
import { onTestFinished } from 'vitest';
import { type AdminOptions, createAdmin } from '../../src/admin.ts';
import { systemClock } from '../../src/clock.ts';
import { createDashboard } from '../../src/dashboard.ts';
import { Problem } from '../../src/errors.ts';
import { silentLogger } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';

export const ADMIN_TOKEN = 'a token for the admin';
export const PROJECT = 'p-test';

const claims = Buffer.from(JSON.stringify({ project_id: PROJECT })).toString('base64url');
/** As `Authorization`: the one token of the one project. */
export const PROJECT_TOKEN = `Bearer e30.${claims}.x`;

const metrics = createMetrics({
  size: () => ({ held: 3, waiting: 2, inFlight: 1 }),
  storeAvailable: () => true,
  runsHeld: () => 0,
});

const DEFAULTS: AdminOptions = {
  adminToken: ADMIN_TOKEN,
  version: '0.0.0-test',
  authenticator: {
    check(projectId, authorization) {
      if (projectId !== PROJECT || authorization !== PROJECT_TOKEN) throw new Problem('unauthorized');
    },
  },
  metrics,
  readiness: () => undefined,
  api(_req, res, { projectId, runId }) {
    res.setHeader('X-Request-Id', runId);
    res.end(`${projectId ?? 'all'}\n`);
  },
  dashboard: createDashboard({ dir: 'no such folder', log: silentLogger }),
  clock: systemClock,
  log: silentLogger,
};

export function adminWith(options: Partial<AdminOptions>) {
  return createAdmin({ ...DEFAULTS, ...options });
}

/** Listens until the test has finished. */
export async function openAdmin(options: Partial<AdminOptions>): Promise<string> {
  const admin = adminWith(options);
  const { port } = await admin.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => admin.stop());
  return `http://127.0.0.1:${port}`;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
  readonly text: string;
}

interface Sending {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** As it is: fetch does not let a Host be chosen, and undoes compression. */
export function send(url: string, { method = 'GET', headers = {}, body }: Sending = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    // Said for every method: Node leaves it out of some, and then no body can follow.
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const sent = request(url, { method, headers: { ...headers, ...length } }, res => {
      const pieces: Buffer[] = [];
      res.on('data', (piece: Buffer) => void pieces.push(piece));
      res.on('end', () => {
        const bytes = Buffer.concat(pieces);
        resolve({ status: res.statusCode!, headers: res.headers, bytes, text: bytes.toString() });
      });
    });
    sent.on('error', reject).end(body);
  });
}

/** The `code` of a problem, or the text of an answer that is none. */
export function outcome({ status, headers, text }: Reply): [number, string] {
  const refused = headers['content-type'] === 'application/problem+json';
  return [status, refused ? (JSON.parse(text) as { code: string }).code : text.trim()];
}
