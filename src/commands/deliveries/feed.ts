/**
 * The deliveries of a project as they change, for as long as somebody looks on: the live stream of the service,
 * opened again after a cut. What the stream does not tell, after a cut or by its own words, is read from the list,
 * so that nothing is skipped: all that is pending, and all that was made or has settled since the latest that was
 * told, by the times of the service, as far back as a bounded look at the list reaches. What was told before is
 * not told again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { EventStreamReader } from '../../delivery/event-stream.ts';
import { send, strange } from '../ask.ts';
import type { Answer, Client, Fault } from '../client.ts';
import { readableDate } from '../elapsed.ts';
import { pauses } from '../follow.ts';
import { Failed } from '../output.ts';
import { PAGE, queryOf, readPage } from '../pages.ts';
import type { DeliveryFacts } from './answer.ts';
import { Recent } from './recent.ts';

export interface FeedOptions {
  readonly client: Client;
  /** As the API takes it. */
  readonly filter: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** What becomes of the connection, for people. */
  readonly note: (message: string) => void;
}

/** The service is heard every 15 seconds at least. */
const SILENCE_MS = 45_000;
/** Changes are not told in the order of their times, nor do all nodes have the same. */
const SLACK_MS = 10_000;
/** How far back the list is looked through. */
const MOST_PAGES = 25;
/** Deliveries that are remembered as they were told. */
const MEMORY = 10_000;

/** Fails where the service cannot be reached at first, or refuses. */
export async function* followDeliveries(options: FeedOptions): AsyncGenerator<DeliveryFacts> {
  const { signal, note } = options;
  const told = new Recent<string, string>(MEMORY);
  const isNews = (delivery: DeliveryFacts): boolean => {
    const now = JSON.stringify(delivery);
    if (told.get(delivery.run_id) === now) return false;
    told.set(delivery.run_id, now);
    return true;
  };
  let connection = await connect(options);
  let latest = connection.kind === 'fault' ? 0 : openedAt(connection.stream, options.clock);
  while (!signal.aborted) {
    if (connection.kind === 'fault') throw new Failed(connection.message);
    for await (const deliveries of changesIn(connection, () => missedSince(latest - SLACK_MS, options))) {
      latest = Math.max(latest, ...deliveries.map(changedAt));
      yield* deliveries.filter(isNews);
    }
    if (signal.aborted) return;
    note('the stream has broken off, connecting again');
    connection = await connectAgain(options, latest - SLACK_MS);
    if (connection.kind === 'connection') note('connected again');
  }
}

interface Connection {
  readonly kind: 'connection';
  readonly stream: Answer;
  /** What has changed while there was none, the oldest first. */
  readonly missed: DeliveryFacts[];
}

function openedAt({ headers }: Answer, clock: Clock): number {
  const date = Date.parse(String(headers['date']));
  return Number.isNaN(date) ? clock.now() : date;
}

function changedAt({ created_at: created, settled_at: settled }: DeliveryFacts): number {
  return Date.parse(settled ?? created);
}

/** For as long as that may help. */
async function connectAgain(options: FeedOptions, since: number): Promise<Connection | Fault> {
  const { signal } = options;
  const waits = pauses();
  for (;;) {
    await sleep(waits.next().value, undefined, { signal }).catch(() => {});
    const connection = await connect(options, since);
    if (connection.kind === 'connection' || !connection.passing || signal.aborted) return connection;
  }
}

/** The stream is there first: what changes while the list is read comes by it. */
async function connect(options: FeedOptions, since?: number): Promise<Connection | Fault> {
  const leaving = new AbortController();
  const signal = AbortSignal.any([options.signal, leaving.signal]);
  const stream = await openStream({ ...options, signal });
  if (stream.kind === 'fault') return stream;
  const missed = since === undefined ? [] : await missedSince(since, options);
  if (!('kind' in missed)) return { kind: 'connection', stream, missed };
  leaving.abort();
  return missed;
}

async function openStream({ client, filter, signal }: FeedOptions): Promise<Answer | Fault> {
  const path = `/_deliveries/stream?${queryOf(filter)}`;
  const reply = await send(client, { path, signal, timeoutMs: SILENCE_MS });
  if (reply.kind === 'fault') return reply;
  const live = reply.status === 200 && reply.headers['content-type']?.startsWith('text/event-stream');
  return live ? reply : strange(reply, 'changes of deliveries');
}

/**
 * What was missed, then what comes with each piece of the stream, or is to be read as it says. It ends with the
 * stream, however that ends, or where that cannot be read.
 */
async function* changesIn(
  { stream, missed }: Connection,
  readMissed: () => Promise<DeliveryFacts[] | Fault>,
): AsyncGenerator<DeliveryFacts[]> {
  const reader = new EventStreamReader();
  yield missed;
  try {
    for await (const piece of stream.body) {
      const events = reader.push(piece);
      yield events
        .filter(({ name }) => name === 'delivery')
        .map(({ data }) => JSON.parse(data) as DeliveryFacts);
      if (!events.some(({ name }) => name === 'missed')) continue;
      const read = await readMissed();
      if ('kind' in read) return;
      yield read;
    }
  } catch {
    // A cut is nothing else than an end: there is a next connection.
  }
}

async function missedSince(since: number, options: FeedOptions): Promise<DeliveryFacts[] | Fault> {
  const { client, filter: query, signal, note } = options;
  const missed: DeliveryFacts[] = [];
  let cursor: string | undefined;
  let oldest: DeliveryFacts | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const place = { limit: PAGE, cursor, signal };
    const page = await readPage<DeliveryFacts>(client, { name: 'deliveries', query }, place);
    if (page.kind === 'fault') return page;
    missed.push(...page.entries.filter(each => mayHaveChanged(each, since)));
    oldest = page.entries.at(-1) ?? oldest;
    if (page.next === null) return missed.toReversed();
    cursor = page.next;
  }
  note(`changes meanwhile of what is older than ${readableDate(oldest?.created_at ?? 'that')} are not told`);
  return missed.toReversed();
}

function mayHaveChanged(delivery: DeliveryFacts, since: number): boolean {
  return delivery.state === 'pending' || changedAt(delivery) >= since;
}
