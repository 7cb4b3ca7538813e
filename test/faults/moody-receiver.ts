/**
 * A receiver with moods: how it answers a delivery follows from the run's id, so that every run has a fate
 * that a test can foretell, whatever happens to the service in between. It notes each POST, with the node that
 * sent it, and which of its lives that was.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
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

/** Of two nodes the second sends the Standard Webhooks headers as well: by them they are told apart. */
export type Node = 0 | 1;

export interface Post {
  readonly node: Node;
  /** Which start of the node it came from. */
  readonly life: number;
  /** In which life each node was when it came. */
  readonly lives: readonly [number, number];
  /** When it came, in milliseconds since the epoch. */
  readonly at: number;
  /** `X-Service-Webhook-Attempt`. */
  readonly number: number;
  /** It gets no answer. */
  readonly hangs: boolean;
  /** Its answer, where it was one that settles the delivery. */
  settled: boolean;
  /** Undefined where the body broke off. */
  content?: { readonly digest: string; readonly resultDigest: string; readonly signed: boolean };
}

export interface MoodyReceiver {
  readonly url: string;
  /** By run id, in the order of arrival. */
  readonly posts: ReadonlyMap<string, readonly Post[]>;
  /** Resolves when nothing of the node's last life can arrive any more, and counts the next one. */
  nextLife(node?: Node): Promise<void>;
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
  /** By who sends over them; undefined until something has come. */
  const sockets = new Map<Socket, Node | undefined>();
  const lives: [number, number] = [1, 1];

  async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const runId = String(req.headers['x-request-id']);
    const node = 'webhook-id' in req.headers ? 1 : 0;
    sockets.set(req.socket, node);
    const number = Number(req.headers['x-service-webhook-attempt']);
    const post: Post = {
      node,
      life: lives[node],
      lives: [...lives],
      at: Date.now(),
      number,
      hangs: moodOf(runId).acts[number - 1] === 'hang',
      settled: false,
    };
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
    sockets.set(socket, undefined);
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
    async nextLife(node = 0) {
      await letIn((server.address() as AddressInfo).port);
      const isOpen = (): boolean =>
        [...sockets.values()].some(sender => sender === node || sender === undefined);
      await vi.waitUntil(() => !isOpen(), { timeout: 10_000, interval: 5 });
      lives[node] += 1;
    },
  };
}

/** A connection of our own follows all that came before it: once it is closed, those are known. */
async function letIn(port: number): Promise<void> {
  const probe = connect(port, '127.0.0.1').end().resume();
  await once(probe, 'close');
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
