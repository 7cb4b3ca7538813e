/** What is read for people: a page of a list, what is told of each delivery, its content, what is pending. */
import type { DatabaseSync } from 'node:sqlite';
import type { DeliverySummary } from '../../ledger.ts';
import { deliverySummary, type SummaryRow } from '../../rows.ts';
import { formatRunId } from '../key.ts';
import type { Handlers } from '../protocol.ts';
import type { ListKeys } from './listing.ts';
import type { LocateDelivery } from './locate.ts';

/** Among how many of the oldest runs the delivery is looked for that was answered first. */
const OLDEST = 1_000;

export type ReadSummary = (id: number) => DeliverySummary;

export function summaryReader(db: DatabaseSync): ReadSummary {
  const select = db.prepare(
    `SELECT c.run_id, d.project, d.app, c.target, o.target AS other_target, c.status, c.created_at, d.state,
       d.reason, d.round, d.due_at, d.settled_at, d.last_status,
       (SELECT count(*) FROM attempts WHERE delivery = d.id) AS attempts,
       (SELECT error FROM attempts WHERE delivery = d.id ORDER BY ordinal DESC LIMIT 1) AS last_error
     FROM deliveries d JOIN contents c ON c.id = d.id LEFT JOIN overrides o ON o.id = d.id WHERE d.id = ?`,
  );
  return id => {
    const row = select.get(id) as unknown as SummaryRow & { readonly run_id: Uint8Array };
    return deliverySummary(formatRunId(row.run_id), row);
  };
}

interface ListOptions {
  readonly list: ListKeys;
  readonly read: ReadSummary;
  readonly locate: LocateDelivery;
}

export function listDeliveriesHandler({ list, read, locate }: ListOptions): Handlers['listDeliveries'] {
  return ({ filter, page }) => {
    const { keys, next } = list(filter, page);
    return { deliveries: keys.map(read), ...(next !== undefined && { next: locate.runId(next)! }) };
  };
}

export function listRunIdsHandler({ list, locate }: ListOptions): Handlers['listRunIds'] {
  return ({ filter, page }) => {
    const { keys, next } = list(filter, page);
    return {
      runIds: keys.map(key => locate.runId(key)!),
      ...(next !== undefined && { next: locate.runId(next)! }),
    };
  };
}

export function summariesHandler({ read, locate }: ListOptions): Handlers['summaries'] {
  return ({ runIds }) =>
    runIds
      .map(runId => locate.key(runId))
      .filter(key => key !== undefined)
      .map(read);
}

export function contentHandler(locate: LocateDelivery, body: Handlers['body']): Handlers['content'] {
  return ({ runId }, ...rest) => {
    const id = locate.key(runId);
    return id === undefined ? undefined : body({ id }, ...rest);
  };
}

/** Those that are gone are left out. */
export function runsOfHandler(locate: LocateDelivery): Handlers['runsOf'] {
  return ({ ids }) => ids.map(id => locate.runId(id)).filter(runId => runId !== undefined);
}

export function pendingOfHandler(db: DatabaseSync): Handlers['pendingOf'] {
  const reading = (condition: string) => {
    const pending = `FROM deliveries INDEXED BY deliveries_pending WHERE state = 0 ${condition}`;
    const count = db.prepare(`SELECT count(*) AS count ${pending}`);
    const oldest = db.prepare(
      `SELECT min(created_at) AS at FROM contents
       WHERE id IN (SELECT id ${pending} ORDER BY id LIMIT ${OLDEST})`,
    );
    return (...parameters: string[]) => ({
      pending: count.get(...parameters)!['count'] as number,
      at: oldest.get(...parameters)!['at'] as number | null,
    });
  };
  const ofAll = reading('');
  const ofProject = reading('AND project = ?');
  return ({ project }) => {
    const { pending, at } = project === undefined ? ofAll() : ofProject(project);
    return { pending, ...(at !== null && { oldestAt: at }) };
  };
}
