/**
 * Whose turn it is: a pure queue of queues, without timers. Entries wait in one line per target within one
 * per project; projects are served round robin, and so are the targets within a project.
 *
 * Hard limits: `concurrency` in flight at all, `perTarget` in flight to one target, whoever asks for it.
 * Shares: a target beyond a tenth of the slots, or a project beyond a fifth, is served only when nobody
 * within their share could use the slot.
 *
 * `next` walks past those that may not be served. Whoever stands in its way holds slots, and slots are few, so
 * the walk is bounded by them and by the number of projects, never by how many entries wait.
 */
import { Line, type Place } from './line.ts';

export interface Turn {
  readonly projectId: string;
  /** Scheme, host and port of the target. */
  readonly origin: string;
  /** A repeated attempt. It goes before the first ones to its target, so that its gap stays what it should be. */
  readonly repeated: boolean;
}

export interface TurnLimits {
  readonly concurrency: number;
  readonly perTarget: number;
}

/** A receiver, shared by every project that sends to it. */
interface Target {
  readonly origin: string;
  inFlight: number;
  /** Lines that refer to it; at 0 it is forgotten. */
  lines: number;
}

/** The entries of one project for one target. */
interface TargetLine<T> {
  readonly target: Target;
  readonly repeated: Line<T>;
  readonly first: Line<T>;
  /** Where it stands in its project's round while it has entries waiting. */
  place: Place<TargetLine<T>> | undefined;
  inFlight: number;
}

interface Project<T> {
  readonly projectId: string;
  readonly lines: Map<string, TargetLine<T>>;
  readonly round: Line<TargetLine<T>>;
  place: Place<Project<T>> | undefined;
  inFlight: number;
}

interface Candidate<T> {
  readonly project: Project<T>;
  readonly line: TargetLine<T>;
  readonly rank: number;
}

/** Order of preference: within both shares, project beyond its share, target beyond its share, both beyond. */
const PROJECT_BEYOND = 1;
const TARGET_BEYOND = 2;

export class Turns<T extends Turn> {
  readonly #limits: TurnLimits;
  readonly #targetShare: number;
  readonly #projectShare: number;
  readonly #targets = new Map<string, Target>();
  readonly #projects = new Map<string, Project<T>>();
  readonly #round = new Line<Project<T>>();
  #waiting = 0;
  #inFlight = 0;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
    this.#targetShare = Math.max(1, Math.floor(limits.concurrency / 10));
    this.#projectShare = Math.max(1, Math.floor(limits.concurrency / 5));
  }

  /** Entries that wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Entries that had their turn and are not done. */
  get inFlight(): number {
    return this.#inFlight;
  }

  push(entry: T): void {
    const project = this.#project(entry.projectId);
    const line = this.#line(project, entry.origin);
    (entry.repeated ? line.repeated : line.first).append(entry);
    line.place ??= project.round.append(line);
    project.place ??= this.#round.append(project);
    this.#waiting += 1;
  }

  /** Serves an entry at once, where nobody waits and there is a slot for it. `done` gives the slot back. */
  take(entry: Turn): boolean {
    if (this.#waiting > 0 || this.#inFlight >= this.#limits.concurrency) return false;
    const target = this.#targets.get(entry.origin);
    if (target !== undefined && target.inFlight >= this.#limits.perTarget) return false;
    const project = this.#project(entry.projectId);
    this.#occupy(project, this.#line(project, entry.origin));
    return true;
  }

  /** The entry to be served now, if there is one and a slot for it. `done` gives the slot back. */
  next(): T | undefined {
    if (this.#inFlight >= this.#limits.concurrency || this.#waiting === 0) return undefined;
    const chosen = this.#choose();
    return chosen === undefined ? undefined : this.#serve(chosen);
  }

  done(entry: Turn): void {
    const project = this.#projects.get(entry.projectId);
    const line = project?.lines.get(entry.origin);
    if (project === undefined || line === undefined || line.inFlight === 0) {
      throw new Error('done without a turn');
    }
    line.inFlight -= 1;
    line.target.inFlight -= 1;
    project.inFlight -= 1;
    this.#inFlight -= 1;
    this.#forgetIdle(project, line);
  }

  #choose(): Candidate<T> | undefined {
    let best: Candidate<T> | undefined;
    for (const project of this.#round) {
      const candidate = this.#chooseWithin(project);
      if (candidate === undefined || (best !== undefined && best.rank <= candidate.rank)) continue;
      best = candidate;
      if (best.rank === 0) break;
    }
    return best;
  }

  #chooseWithin(project: Project<T>): Candidate<T> | undefined {
    const least = project.inFlight < this.#projectShare ? 0 : PROJECT_BEYOND;
    let best: Candidate<T> | undefined;
    for (const line of project.round) {
      const { inFlight } = line.target;
      if (inFlight >= this.#limits.perTarget) continue;
      if (inFlight < this.#targetShare) return { project, line, rank: least };
      best ??= { project, line, rank: least + TARGET_BEYOND };
    }
    return best;
  }

  /** Takes the entry and sends its target and its project to the end of their rounds. */
  #serve({ project, line }: Candidate<T>): T | undefined {
    const entry = line.repeated.shift() ?? line.first.shift();
    this.#occupy(project, line);
    this.#waiting -= 1;
    project.round.remove(line.place!);
    line.place = isEmpty(line) ? undefined : project.round.append(line);
    this.#round.remove(project.place!);
    project.place = project.round.length === 0 ? undefined : this.#round.append(project);
    return entry;
  }

  #occupy(project: Project<T>, line: TargetLine<T>): void {
    line.inFlight += 1;
    line.target.inFlight += 1;
    project.inFlight += 1;
    this.#inFlight += 1;
  }

  #project(projectId: string): Project<T> {
    let project = this.#projects.get(projectId);
    if (project === undefined) {
      project = { projectId, lines: new Map(), round: new Line(), place: undefined, inFlight: 0 };
      this.#projects.set(projectId, project);
    }
    return project;
  }

  #line(project: Project<T>, origin: string): TargetLine<T> {
    let line = project.lines.get(origin);
    if (line === undefined) {
      const target = this.#targets.get(origin) ?? { origin, inFlight: 0, lines: 0 };
      target.lines += 1;
      this.#targets.set(origin, target);
      line = { target, repeated: new Line(), first: new Line(), place: undefined, inFlight: 0 };
      project.lines.set(origin, line);
    }
    return line;
  }

  /** Targets come and go without end: what neither waits nor is in flight must not be remembered. */
  #forgetIdle(project: Project<T>, line: TargetLine<T>): void {
    if (line.inFlight > 0 || line.place !== undefined) return;
    project.lines.delete(line.target.origin);
    line.target.lines -= 1;
    if (line.target.lines === 0) this.#targets.delete(line.target.origin);
    if (project.lines.size === 0) this.#projects.delete(project.projectId);
  }
}

function isEmpty<T>(line: TargetLine<T>): boolean {
  return line.repeated.length === 0 && line.first.length === 0;
}
