/**
 * The exchange of a run with its app, with nobody on the caller's side. An app that cannot be reached, and so
 * has seen nothing of the call, is no end of the run: it can be tried again.
 */
import type { Problem, ProblemCode } from '../errors.ts';
import { NOBODY } from '../exchange/caller-side.ts';
import { Exchange, type ExchangeDeps } from '../exchange/exchange.ts';
import type { Run } from '../exchange/run.ts';

/** What an app that is down, or starting, looks like. */
const UNREACHED: ReadonlySet<ProblemCode> = new Set(['app_unreachable', 'app_crashed']);

export class RunExchange extends Exchange {
  readonly #settled: Promise<void>;
  #abandoned = false;
  #obstacle: Problem | undefined;

  constructor(deps: ExchangeDeps, run: Run) {
    const { promise, resolve } = Promise.withResolvers<void>();
    super(deps, run, NOBODY, { ended() {}, settled: resolve });
    this.#settled = promise;
  }

  /** Why the app could not be reached, where that is how it ended. */
  get obstacle(): Problem | undefined {
    return this.#obstacle;
  }

  override fail(problem: Problem): void {
    if (this.over || this.reached || !UNREACHED.has(problem.code)) {
      super.fail(problem);
      return;
    }
    this.#obstacle = problem;
    this.abandon();
  }

  override abandon(): void {
    if (!this.over) this.#abandoned = true;
    super.abandon();
  }

  /** Resolves when nothing is left to do: whether there is an answer, or a problem in its place, and it is kept. */
  async settled(): Promise<boolean> {
    await this.#settled;
    return !this.#abandoned;
  }
}
