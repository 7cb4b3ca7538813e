/**
 * Runs that a filter asks for, newest first. Each part of them lies in an index in the order of time, so the
 * keys of a page are read off the parts and put together, and only then the runs.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { RUN_STATES } from '../../codes.ts';
import type { FinalRunState, RunFilter, RunRecord, RunState } from '../../runs.ts';
import { parseRunId } from '../key.ts';
import type { Handlers } from '../protocol.ts';
import type { Locate } from './locate.ts';
import type { ReadRecord } from './reading.ts';

const FINAL: readonly FinalRunState[] = ['succeeded', 'failed', 'cancelled'];

interface ListOptions {
  readonly db: DatabaseSync;
  readonly locate: Locate;
  readonly read: ReadRecord;
}

/** A part of the runs: where it is read, and what is asked of its rows. */
interface Part {
  readonly from: string;
  readonly where: readonly string[];
  readonly parameters: readonly (string | number)[];
}

export function listRunsHandler({ db, locate, read }: ListOptions): Handlers['listRuns'] {
  const projectsOf = projectReader(db);
  const statements = new Map<string, StatementSync>();

  function keysOf({ from, where, parameters }: Part, before: number, limit: number): number[] {
    const sql = `SELECT id FROM ${from} WHERE ${[...where, 'id < ?'].join(' AND ')} ORDER BY id DESC LIMIT ?`;
    const statement = statements.get(sql) ?? db.prepare(sql);
    statements.set(sql, statement);
    return statement.all(...parameters, before, limit).map(row => row['id'] as number);
  }

  /** Undefined where it is no run id. Of a run that is gone, its millisecond is known. */
  function keyBefore(runId: string | undefined): number | undefined {
    if (runId === undefined) return Number.MAX_SAFE_INTEGER;
    return locate.live(runId) ?? locate.ended(runId) ?? parseRunId(runId)?.first;
  }

  /** There is no index over all projects but that of the keys. */
  function scopesOf(filter: RunFilter): RunFilter[] {
    const whole = filter.app === undefined && filter.state === undefined;
    if (whole || filter.projectId !== undefined) return [filter];
    return projectsOf().map(projectId => ({ ...filter, projectId }));
  }

  return ({ filter, page: { before, limit } }): RunRecord[] => {
    const key = keyBefore(before);
    if (key === undefined) return [];
    const keys = scopesOf(filter)
      .flatMap(partsOf)
      .flatMap(part => keysOf(part, key, limit));
    const newest = keys.toSorted((a, b) => b - a).slice(0, limit);
    return newest.map(id => read(id)!);
  };
}

function partsOf(filter: RunFilter): Part[] {
  const { state } = filter;
  const live = state === undefined ? waitingPart(filter, []) : LIVE[state]?.(filter);
  return [...(live ? [live] : []), ...endedParts(filter)];
}

/** Where the runs of a state are that have not ended. */
const LIVE: Readonly<Partial<Record<RunState, (filter: RunFilter) => Part>>> = {
  queued: filter => waitingPart(filter, ['begun = 0', 'cancelled = 0']),
  // Few, but they may be the oldest: looked for among all that wait, they would be found last.
  running: filter => part(filter, 'live_runs INDEXED BY live_runs_owned', ['owner IS NOT NULL', 'begun = 1']),
  cancelled: filter =>
    part(filter, 'live_runs INDEXED BY live_runs_cancelled', ['cancelled = 1', 'begun = 0']),
};

function waitingPart(filter: RunFilter, where: readonly string[]): Part {
  const index = filter.app === undefined ? 'live_runs_project' : 'live_runs_app';
  return part(filter, filter.projectId === undefined ? 'live_runs' : `live_runs INDEXED BY ${index}`, where);
}

function endedParts(filter: RunFilter): Part[] {
  const { projectId, app, state } = filter;
  if (projectId === undefined) return [part(filter, 'ended_runs')];
  if (app === undefined && state === undefined) {
    return [part(filter, 'ended_runs INDEXED BY ended_runs_project')];
  }
  const index = app === undefined ? 'ended_runs_state' : 'ended_runs_app';
  const states = FINAL.filter(each => state === undefined || each === state);
  return states.map(each =>
    part(filter, `ended_runs INDEXED BY ${index}`, [`state = ${RUN_STATES.indexOf(each)}`]),
  );
}

function part({ projectId, app }: RunFilter, from: string, where: readonly string[] = []): Part {
  const named = Object.entries({ project: projectId, app }).filter(([, value]) => value !== undefined);
  return {
    from,
    where: [...named.map(([column]) => `${column} = ?`), ...where],
    parameters: named.map(([, value]) => value!),
  };
}

/** Every project that has runs, in one step each. */
function projectReader(db: DatabaseSync): () => string[] {
  const next = db.prepare(
    `SELECT min(project) AS project FROM (
       SELECT min(project) AS project FROM live_runs WHERE project > ?1
       UNION ALL SELECT min(project) FROM ended_runs WHERE project > ?1)`,
  );
  const after = (project: string) => next.get(project)!['project'] as string | null;
  return () => {
    const projects: string[] = [];
    for (let project = after(''); project !== null; project = after(project)) projects.push(project);
    return projects;
  };
}
