/**
 * A service with several workers as a process of its own, whose workers can be told apart.
 */
import { randomUUID } from 'node:crypto';
import { type Agent, request } from 'node:http';
import { vi } from 'vitest';
import { callRaw, type RawAnswer } from './caller.ts';
import { type Conversation, converse } from './conversation.ts';
import { type Addresses, type Place, serve, type ServiceProcess } from './process.ts';
import { PROJECT, testToken } from './service.ts';

const SOON = { timeout: 30_000, interval: 10 };

export interface LogLine {
  readonly worker?: number;
  readonly pid?: number;
  readonly msg: string;
  readonly run_id?: string;
}

export interface WorkersRig {
  readonly service: ServiceProcess;
  readonly addresses: Addresses;
  /** In the environment of the service and of everything that it has started. */
  readonly mark: string;
  /** All lines of the log so far. */
  readonly lines: () => readonly LogLine[];
  /** The process that is worker `number` now. */
  pidOf(number: number): number;
  /** Waits until worker `number` is another process. */
  successorOf(pid: number, number: number): Promise<number>;
  /** The bytes of a call without a body. */
  head(path: string): string;
  /** A call on a connection of its own. */
  call(path: string, target?: string, body?: object): Promise<RawAnswer>;
  /** The status of a call on one of the agent's connections. */
  callWith(agent: Agent, path: string): Promise<number>;
  /** A call whose answer is not waited for. */
  begin(path: string, target?: string, body?: object): Promise<Conversation>;
  /** Does something while only worker `number` takes connections: the others stand still. */
  onlyOn<T>(number: number, action: () => Promise<T>): Promise<T>;
}

/** Each line is read once: under load there are very many. */
function readerOf(service: ServiceProcess): () => readonly LogLine[] {
  const lines: LogLine[] = [];
  let read = 0;
  return () => {
    const end = service.stderr.lastIndexOf('\n') + 1;
    const fresh = service.stderr.slice(read, end).split('\n').slice(0, -1);
    lines.push(...fresh.map(line => JSON.parse(line) as LogLine));
    read = end;
    return lines;
  };
}

/** Two of them. */
export async function serveWorkers(
  place: Place,
  env: Readonly<Record<string, string>> = {},
): Promise<WorkersRig> {
  const MARK = randomUUID();
  const service = serve(place, { MARK, PYTHONDONTWRITEBYTECODE: '1', ...env });
  const addresses = await service.ready;
  const auth = `Authorization: Bearer ${await testToken()}`;
  const lines = readerOf(service);
  const pidsOf = (number: number): number[] =>
    lines()
      .filter(({ worker, msg }) => worker === number && msg === 'a worker is serving')
      .map(({ pid }) => pid!);
  const numbers = [1, 2];
  // Lines are written a little later than they are made.
  await vi.waitUntil(() => numbers.every(number => pidsOf(number).length > 0), SOON);
  const pathOf = (path: string, target?: string): string =>
    `/v4/${PROJECT}/${path}${target === undefined ? '' : `?webhookEndpoint=${encodeURIComponent(target)}`}`;

  const rig: WorkersRig = {
    service,
    addresses,
    mark: `MARK=${MARK}`,
    lines,
    pidOf: number => pidsOf(number).at(-1)!,
    async successorOf(pid, number) {
      await vi.waitUntil(() => rig.pidOf(number) !== pid, SOON);
      return rig.pidOf(number);
    },
    head: path => `POST ${pathOf(path)} HTTP/1.1\r\nHost: test\r\n${auth}\r\nContent-Length: 0\r\n\r\n`,
    call: (path, target, body = {}) =>
      callRaw({
        port: addresses.port,
        method: 'POST',
        path: pathOf(path, target),
        headers: [auth],
        body: JSON.stringify(body),
      }),
    callWith: (agent, path) =>
      new Promise((resolve, reject) => {
        const [name, value] = auth.split(': ') as [string, string];
        const options = { agent, method: 'POST', port: addresses.port, headers: { [name]: value } };
        request({ ...options, host: '127.0.0.1', path: pathOf(path) }, answer => {
          answer
            .resume()
            .on('end', () => resolve(answer.statusCode!))
            .on('error', reject);
        })
          .on('error', reject)
          .end();
      }),
    async begin(path, target, body = {}) {
      const conversation = await converse(addresses.port);
      const text = JSON.stringify(body);
      const head = `POST ${pathOf(path, target)} HTTP/1.1\r\nHost: test\r\n${auth}`;
      conversation.send(`${head}\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
      return conversation;
    },
    async onlyOn(number, action) {
      const others = numbers.filter(each => each !== number).map(each => rig.pidOf(each));
      for (const pid of others) process.kill(pid, 'SIGSTOP');
      try {
        return await action();
      } finally {
        for (const pid of others) process.kill(pid, 'SIGCONT');
      }
    },
  };
  return rig;
}
