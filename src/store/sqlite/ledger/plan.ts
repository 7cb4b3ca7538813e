/**
 * Where a list is read off. Rows of an index are in the order of time where everything before the id is given;
 * what else is asked for is asked of each delivery on the way.
 */
import { REASONS, STATES } from '../../codes.ts';
import type { DeliveryFilter } from '../../ledger.ts';

/** What is asked of a row, with its parameters. */
export type Condition = readonly [sql: string, ...parameters: (string | number)[]];

/** Those that the catalogue has in order, those that it has not yet, or all. */
export type Reach = 'catalogued' | 'recent' | 'all';

export interface Part {
  readonly from: string;
  /** What the index finds by itself. */
  readonly by: readonly Condition[];
  /** How to get from a row to its delivery, where that is another row. */
  readonly join: string;
  /** What has to be asked of each delivery. */
  readonly rest: readonly Condition[];
  readonly reach: Reach;
  /** Its rows lie in the order of time for each owner by itself. */
  readonly eachOwner: boolean;
}

/** Each of these has everything that is asked for. */
export type Alternatives = readonly Part[];

type Column = 'project' | 'app' | 'host' | 'state' | 'reason' | 'status';

/** The condition of the partial indexes, word for word: by it SQLite knows that they have what is wanted. */
const TROUBLE: Condition = ['(state > 1 OR state = 1 AND last_status NOT BETWEEN 200 AND 299)'];
const PENDING: Condition = ['state = 0'];

/** All parts together make up the list. */
export function partsOf(filter: DeliveryFilter): readonly Alternatives[] {
  const { reason, status } = filter;
  if (reason !== undefined && filter.state !== undefined && filter.state !== 'failed') return [];
  const state = reason === undefined ? filter.state : 'failed';
  const conditions = conditionsOf(filter);
  const troubled = status !== undefined && (status.to < 200 || status.from > 299);

  if (state === 'pending') return [[pendingPart(conditions)]];
  const settled = [troublePart(conditions)];
  if (state === 'failed' || state === 'cancelled') return [settled];
  if (!troubled) return plainParts(conditions);
  // Of those that were delivered, only the odd ones can have such a status.
  return state === 'delivered' ? [settled] : [settled, [pendingPart(conditions)]];
}

type Conditions = ReadonlyMap<Column, Condition>;

function conditionsOf({ projectId, app, host, state, reason, status }: DeliveryFilter): Conditions {
  const conditions = new Map<Column, Condition>();
  if (projectId !== undefined) conditions.set('project', ['project = ?', projectId]);
  if (app !== undefined) conditions.set('app', ['app = ?', app]);
  if (host !== undefined) conditions.set('host', ['host = ?', host]);
  if (state !== undefined) conditions.set('state', ['state = ?', STATES.indexOf(state)]);
  if (reason !== undefined) conditions.set('reason', ['reason = ?', REASONS.indexOf(reason)]);
  if (status) conditions.set('status', ['last_status BETWEEN ? AND ?', status.from, status.to]);
  return conditions;
}

function pendingPart(conditions: Conditions): Part {
  return {
    ...part('INDEXED BY deliveries_pending', [PENDING], without(conditions, 'state')),
    eachOwner: true,
  };
}

function troublePart(conditions: Conditions): Part {
  const project = conditions.get('project');
  return project
    ? part('INDEXED BY deliveries_trouble_project', [TROUBLE, project], without(conditions, 'project'))
    : part('INDEXED BY deliveries_trouble', [TROUBLE], without(conditions));
}

function plainParts(conditions: Conditions): readonly Alternatives[] {
  const places = placeParts(conditions);
  const project = conditions.get('project');
  const recent = part('NOT INDEXED', [], without(conditions));
  if (places.length > 0) return [[{ ...recent, reach: 'recent' }], places];
  return project
    ? [[part('INDEXED BY deliveries_project', [project], without(conditions, 'project'))]]
    : [[recent]];
}

/** By where they come from and where they go to. */
function placeParts(conditions: Conditions): Part[] {
  const [project, app, host] = (['project', 'app', 'host'] as const).map(column => conditions.get(column));
  return [
    ...(host ? [catalogued('delivery_hosts', [named(host)], without(conditions, 'host'))] : []),
    ...(project && app
      ? [
          catalogued(
            'delivery_apps',
            [['of_project = ?', ...parametersOf(project)], named(app)],
            without(conditions, 'project', 'app'),
          ),
        ]
      : []),
  ];
}

function part(index: string, by: readonly Condition[], rest: readonly Condition[]): Part {
  return { from: `deliveries ${index}`, by, join: '', rest, reach: 'all', eachOwner: false };
}

function catalogued(table: string, by: readonly Condition[], rest: readonly Condition[]): Part {
  const join = 'CROSS JOIN deliveries USING (id)';
  return { from: table, by, join, rest, reach: 'catalogued', eachOwner: false };
}

function named(condition: Condition): Condition {
  return ['name = ?', ...parametersOf(condition)];
}

function parametersOf([, ...parameters]: Condition): (string | number)[] {
  return parameters;
}

function without(conditions: Conditions, ...columns: readonly Column[]): Condition[] {
  return [...conditions].filter(([column]) => !columns.includes(column)).map(([, condition]) => condition);
}
