/**
 * A receiver with moods: how it answers a delivery follows from the run's id, so that every run has a fate
 * that a test can foretell, whatever happens to the service in between. It notes each POST, with the life of
 * the service that sent it.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished, vi } from 'vitest';
import { signatureOf } from '../support/inbox.ts';

/** What becomes of a run, given that its attempts can end. */
export type Fate = 'delivered' | 'exhausted' | 'rejected';

interface Mood {
  /** Of a hundred runs. */
  readonly share: number;
  readonly fate: Fate;
  /** What it does at attempts 1, 2 and 3: a status, or something worse. */
  readonly acts: readonly [Act, Act, Act];
}

type Act = 200 | 302 | 404 | 500 | 'reset' | 'hang' | 'late';

const MOODS: readonly Mood[] = [
  { share: 74, fate: 'delivered', acts: [200, 200, 200] },
  { share: 5, fate: 'delivered', acts: ['late', 'late', 'late'] },
  { share: 5, fate: 'delivered', acts: [404, 200, 200] },
  { share: 3, fate: 'delivered', acts: [302, 404, 200] },
  { share: 4, fate: 'delivered', acts: ['reset', 200, 200] },
  { share: 1, fate: 'delivered', acts: ['hang', 200, 200] },
  { share: 4, fate: 'exhausted', acts: [404, 302, 404] },
  { share: 4, fate: 'rejected', acts: [500, 500, 500] },
];

const LATE_MS = 300;

export interface Post {
  /** Which start of the service it came from. */
  readonly life: number;
  /** `X-Service-Webhook-Attempt`. */
  readonly number: number;
  /** Its answer, where it was one that settles the delivery. */
  settled: boolean;
  /** Undefined where the body broke off. */
  content?: { readonly digest: string; readonly resultDigest: string; readonly signed: boolean };
}

export interface MoodyReceiver {
  readonly url: string;
  /** By run id, in the order of arrival. */
  readonly posts: ReadonlyMap<string, readonly Post[]>;
  /** Resolves when nothing of the service's last life can arrive any more, and counts the next one. */
  nextLife(): Promise<void>;
}

export function fateOf(runId: string): Fate {
  return moodOf(runId).fate;
}

function moodOf(runId: string): Mood {
  let lot = Number.parseInt(runId.slice(-8), 16) % 100;
  return MOODS.find(({ share }) => (lot -= share) < 0)!;
}

export async function openMoodyReceiver(secret: string): Promise<MoodyReceiver> {
  const posts = new Map<string, Post[]>();
  const sockets = new Set<Socket>();
  let life = 1;

  async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const runId = String(req.headers['x-request-id']);
    const post: Post = { life, number: Number(req.headers['x-service-webhook-attempt']), settled: false };
    const sofar = posts.get(runId);
    if (sofar === undefined) posts.set(runId, [post]);
    else sofar.push(post);
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const signature = signatureOf({ path: req.url!, headers: req.headers, body, runId }, secret);
    post.content = {
      digest: digestOf(body),
      resultDigest: digestOf(resultOf(body)),
      signed: req.headers['x-service-webhook-signature'] === signature,
    };
    act(moodOf(runId).acts[post.number - 1]!, res, post);
  }

  const server = createServer((req, res) => {
    receive(req, res).catch(() => res.destroy());
  });
  server.on('connection', socket => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    posts,
    async nextLife() {
      await vi.waitUntil(() => sockets.size === 0, { timeout: 10_000, interval: 5 });
      life += 1;
    },
  };
}

function act(what: Act, res: ServerResponse, post: Post): void {
  const answer = (status: number): void => {
    res.on('finish', () => (post.settled = status === 200 || status === 500));
    res.writeHead(status, status === 302 ? { Location: 'http://127.0.0.1:1/' } : {}).end();
  };
  if (what === 'reset') res.socket?.resetAndDestroy();
  else if (what === 'late') setTimeout(answer, LATE_MS, 200);
  else if (what !== 'hang') answer(what);
}

const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The `result` of an envelope, as it stands there. */
function resultOf(body: Buffer): Buffer {
  const start = body.indexOf(',"result":') + ',"result":'.length;
  return body.subarray(start, body.lastIndexOf(',"run_time_ms":'));
}
