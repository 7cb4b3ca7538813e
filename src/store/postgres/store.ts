/**
 * The store that nodes share: PostgreSQL. Each kind of write has a lane of group commits; reads go to the pool.
 * This file turns the interface's calls into operations of those. What goes on besides, the node's beats, its
 * looks for dead nodes and the bell, is begun at the opening and ended in reverse.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { createAvailability } from '../availability.ts';
import { inChunks } from '../chunks.ts';
import { ensureDirectory } from '../directory.ts';
import { isRunId } from '../run-id.ts';
import type { Keyring } from '../seal.ts';
import type { AttemptResult, DeliveryRef, NewDelivery, Next, PendingDelivery, Store } from '../store.ts';
import { createBell } from './bell.ts';
import { createBodies } from './bodies.ts';
import { claimer, type Unreadable } from './claim.ts';
import { type ConnectionOptions, createPool } from './connection.ts';
import { describe } from './faults.ts';
import { createFollowing } from './following.ts';
import { freeAll, giveUp, totalOf } from './freeing.ts';
import { createGate } from './gate.ts';
import { holdOf, INSERTED, refOf } from './hold.ts';
import { insertionOf } from './insert.ts';
import { createLanes, type Obstacle } from './lanes.ts';
import { createLedger, pruneActions } from './ledger.ts';
import { LEASE, type Lease } from './lease.ts';
import { leave } from './leaving.ts';
import { createLooking } from './looking.ts';
import { openDatabase } from './opening.ts';
import { assertSpooled } from './parts.ts';
import { createPersistence } from './persistence.ts';
import { createPruner } from './prune.ts';
import { countPending, findDelivery } from './reading.ts';
import { createRounds } from './rounds.ts';
import { createRuns } from './runs.ts';
import { startError } from './start-errors.ts';
import { createStats } from './stats.ts';
import { createTenure } from './tenure.ts';
import { createTimes } from './times.ts';
import { FIRST_UPKEEP_MS, keepUp } from './upkeep.ts';

const CLAIM_CHUNK = 500;
const PRUNE_CHUNK = 500;
/** How long a closing store waits for what it has to write. */
const CLOSE_MS = 5_000;
/** A connection may break; a second beat that fails tells that the database is away. */
const MISSED_BEATS = 2;

export interface PostgresStoreOptions {
  readonly connection: ConnectionOptions;
  /** How many connections at most, besides the two for beats and the bell. */
  readonly connections: number;
  readonly keyring: Keyring;
  /** A name that no other start of the process has had. */
  readonly nodeId: string;
  /** Where large bodies come from, each in a file named by its run id, those of requests with a suffix. */
  readonly spoolDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly lease?: Lease;
}

export function createPostgresStore(options: PostgresStoreOptions): Store {
  const { connection, connections, keyring, nodeId, spoolDir, clock, log, lease = LEASE } = options;
  const database = createPool(connection, connections);
  const persistence = createPersistence(clock);
  const availability = createAvailability<Obstacle>(log);
  const times = createTimes();
  const gate = createGate();
  const listeners: Array<() => void> = [];
  const announce = () => listeners.forEach(listener => listener());
  const tenure = createTenure({ connection, nodeId, clock, lease, times, onBeat, onRegained: announce });
  const owner = () => tenure.owner;
  const following = createFollowing({
    database,
    clock,
    nodeId,
    tell: messages => bell.tell(messages),
    listen: wanted => bell.hear(wanted),
  });
  const changed = (runId: string) => following.changed(runId);
  const bell = createBell({
    connection,
    database,
    clock,
    onRing: announce,
    onTold: message => following.hear(message),
    onMissed: () => following.hear(''),
  });
  const onUnowned = () => bell.ring();
  const lanes = createLanes({ database, persistence, tenure, availability, log, onUnowned });
  const bodies = createBodies({ database, persistence });
  const pruner = createPruner({ connection, database, persistence });
  const takeClaim = claimer({ database, keyring, owner, times });
  const keys = [...keyring.keys.keys()];
  const looking = createLooking({ database, log, deadMs: lease.dead, owner, keys });
  const onMarked = () => bell.ring();
  const shared = { database, persistence, gate, bodies, keyring, times, owner, spoolDir };
  const runs = createRuns({ ...shared, lanes: lanes.runs, onMarked, onDelivery: changed });
  const ledger = createLedger({ ...shared, clock, following, onUnowned });
  const stats = createStats({ database, persistence, gate, clock, nodeId });
  const looks = createRounds(clock, lease.look, look);
  const upkeep = createRounds(clock, FIRST_UPKEEP_MS, () => keepUp(connection, log));
  let opening: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  let missedBeats = 0;
  let claims = INSERTED;

  function onBeat(fault: string | undefined): void {
    missedBeats = fault === undefined ? 0 : missedBeats + 1;
    availability.set('beats_fail', missedBeats < MISSED_BEATS ? undefined : fault);
  }

  async function look(): Promise<number> {
    try {
      const freed = await takeOver();
      const { waiting, followed } = await looking.look();
      following.heed(followed);
      if (freed > 0 || waiting) announce();
    } catch (error) {
      log.debug({ detail: describe(error) }, 'no look at the database'); // the beats tell
    }
    return lease.look;
  }

  async function takeOver(): Promise<number> {
    const freed = await looking.takeOver();
    if (freed === 0) return 0;
    bell.ring();
    following.muchChanged();
    return freed;
  }

  async function start(): Promise<void> {
    ensureDirectory(spoolDir);
    try {
      const { channel } = await openDatabase({ connection, keyring, clock });
      await tenure.start();
      bell.start(channel);
      looks.start();
      upkeep.start();
      gate.open();
    } catch (error) {
      await tenure.stop();
      await database.end();
      throw startError(error, connection);
    }
  }

  async function stop(): Promise<void> {
    await opening?.catch(() => {});
    if (!gate.isOpen) return;
    const { promise: late, resolve } = Promise.withResolvers<'late'>();
    const cancel = clock.after(CLOSE_MS, () => resolve('late'));
    const written = gate.close();
    persistence.stop();
    const ended = Promise.all([written, looks.stop(), upkeep.stop(), bell.stop()]);
    const inTime = (await Promise.race([ended, late])) !== 'late';
    cancel();
    following.stop();
    await tenure.stop();
    if (inTime) await leave(connection, tenure.owner).catch(sayUnsaid);
    await database.end(); // what is still under way fails by this
    await written;
  }

  function sayUnsaid(error: unknown): void {
    log.warn(
      { event: 'store_left_silently', detail: describe(error) },
      'the other nodes were not told of the end',
    );
  }

  async function insert(delivery: NewDelivery): Promise<string> {
    const { runId, body } = delivery;
    if (!isRunId(runId)) throw new RangeError(`not a usable run id: ${runId}`);
    assertSpooled(body, join(spoolDir, runId));
    if ('file' in body) await bodies.write(runId, body.file, body.size);
    const id = await lanes.inserts.submit(insertionOf(delivery, keyring, times));
    changed(runId);
    if ('file' in body) await rm(body.file, { force: true });
    return id;
  }

  async function claimChunk(limit: number, into: PendingDelivery[]): Promise<number> {
    claims += 1;
    const claim = { number: claims, limit };
    const { deliveries, unreadable } = await persistence.persist(replay => takeClaim(claim, replay));
    into.push(...deliveries);
    await Promise.all(unreadable.map(failUnreadable));
    return deliveries.length + unreadable.length;
  }

  /** It cannot be signed as its caller asked, and never will be: it ends here, on record. */
  async function failUnreadable({ ref, runId, attempts }: Unreadable): Promise<void> {
    const startedAt = times.toDatabase(clock.now());
    const timings = { queueMs: 0, totalMs: 0 };
    await lanes.outcomes.submit({
      ...holdOf(ref),
      attempt: { number: attempts + 1, startedAt, timings, error: 'secret_unreadable' },
      next: { state: 'failed', reason: 'blocked' },
    });
    changed(runId);
    log.error(
      { event: 'secret_unreadable', runId },
      'a delivery was failed: its sealed secret cannot be read',
    );
  }

  async function release(): Promise<number> {
    const freed = await freeAll(() => persistence.persist(() => giveUp(database, owner())));
    if (totalOf(freed) > 0) bell.ring();
    if (freed.deliveries > 0) following.muchChanged();
    return totalOf(freed);
  }

  async function endAttempt(ref: DeliveryRef, attempt: AttemptResult, next: Next): Promise<boolean> {
    const hold = holdOf(ref);
    const written = await lanes.outcomes.submit({
      ...hold,
      attempt: { ...attempt, startedAt: times.toDatabase(attempt.startedAt) },
      next: next.state === 'pending' ? { ...next, dueAt: times.toDatabase(next.dueAt) } : next,
    });
    if (written) changed(hold.id);
    return written;
  }

  return {
    runs,
    ledger,
    stats,

    open: () => (opening ??= start()),
    close: () => (closing ??= stop()),

    get available() {
      return gate.isOpen && availability.ok;
    },
    get tenure() {
      return gate.isOpen ? tenure.current : undefined;
    },

    insert: delivery => gate.run(async () => refOf({ id: await insert(delivery), claim: INSERTED })),

    beginAttempt: (ref, startedAt) =>
      gate.run(() => lanes.counts.submit({ ...holdOf(ref), startedAt: times.toDatabase(startedAt) })),

    withdrawAttempt: ref => gate.run(() => lanes.counts.submit(holdOf(ref))),

    endAttempt: (ref, attempt, next) => gate.run(() => endAttempt(ref, attempt, next)),

    recover: () => gate.run(() => persistence.persist(takeOver)),
    release: () => gate.run(release),

    claim: limit =>
      gate.run(async () => {
        const claimed: PendingDelivery[] = [];
        await inChunks(limit, CLAIM_CHUNK, size => claimChunk(size, claimed));
        return claimed;
      }),

    watch(listener) {
      listeners.push(listener);
    },

    body: ref => gate.run(() => bodies.read(holdOf(ref).id)),

    find: runId =>
      gate.run(async () =>
        isRunId(runId) ? persistence.persist(() => findDelivery(database, runId, keyring)) : undefined,
      ),

    backlog: () => gate.run(() => persistence.persist(() => countPending(database))),

    prune: (before, limit) =>
      gate.run(async () => {
        const bound = times.toDatabase(before);
        const age = clock.now() - before;
        await persistence.persist(() => pruneActions(database, bound, limit));
        const dropped = await pruner.days(bound);
        return dropped + (await inChunks(limit, PRUNE_CHUNK, size => pruner.single(bound, age, size)));
      }),
  };
}
