/** Turns the calls of the interface of runs into operations of the database. */
import type { Clock } from '../../../clock.ts';
import { inChunks } from '../../chunks.ts';
import { IDEMPOTENCY_MS, type NewRun, REQUEST_SUFFIX, type RunOutcome, type RunStore } from '../../runs.ts';
import { bytesOf, insertion, spooledSize } from '../insertion.ts';
import type { Submit } from '../operations.ts';
import type { Args, Blobs } from '../protocol.ts';
import type { Spool } from '../spool.ts';
import { formatRef, parseRef } from './ref.ts';

const PRUNE_CHUNK = 200;

export interface RunOperationsOptions {
  readonly submit: Submit;
  readonly spool: Pick<Spool, 'path' | 'remove'>;
  readonly clock: Clock;
}

export function createRunOperations({ submit, spool, clock }: RunOperationsOptions): RunStore {
  let claims = 0;
  const nextClaim = () => (claims += 1);

  return {
    async insert(run) {
      const inserted = await submit('insertRun', ...runInsertion(run, spool));
      const spooled = run.body !== undefined && 'file' in run.body;
      if (inserted.outcome !== 'inserted' && spooled) await spool.remove([requestFile(run.runId)]);
      return inserted;
    },

    claim: wanted => submit('claimRuns', { number: nextClaim(), wanted }),
    claimStrays: (known, before, limit) =>
      submit('claimStrayRuns', { number: nextClaim(), known, before, limit }),

    body: ref => submit('runBody', parseRef(ref)),
    begin: (ref, startedAt) => submit('beginRun', { ...parseRef(ref), startedAt }),
    withdraw: ref => submit('withdrawRun', parseRef(ref)),

    async end(ref, end, outcome) {
      const { runId, ...held } = parseRef(ref);
      const [args, blobs] = ending(outcome, runId, spool);
      const ended = await submit('endRun', { ...held, end, ...args }, blobs);
      if (ended === undefined) return undefined;
      const { spooled, ...rest } = ended;
      if (spooled) await spool.remove([requestFile(runId)]);
      return rest;
    },

    cancel: (project, runId) => submit('cancelRun', { project, runId }),
    toCancel: async () => (await submit('runsToCancel', {})).map(formatRef),

    find: (project, runId) => submit('findRun', { project, runId }),
    result: (project, runId) => submit('runResult', { project, runId }),
    list: (filter, page) => submit('listRuns', { filter, page }),
    oldestQueuedAt: () => submit('oldestQueuedRun', {}),
    ended: runIds => submit('endedRuns', { runIds }),

    async prune(before, limit) {
      const keysBefore = clock.now() - IDEMPOTENCY_MS;
      await inChunks(Number.POSITIVE_INFINITY, PRUNE_CHUNK, chunk =>
        submit('pruneRunKeys', { before: keysBefore, limit: chunk }),
      );
      return inChunks(limit, PRUNE_CHUNK, async chunk => {
        const { count, files } = await submit('pruneRuns', { before, limit: chunk });
        await spool.remove(files);
        return count;
      });
    },
  };
}

function requestFile(runId: string): string {
  return `${runId}${REQUEST_SUFFIX}`;
}

function runInsertion(run: NewRun, spool: Pick<Spool, 'path'>): [args: Args<'insertRun'>, blobs: Blobs] {
  const { body, webhook, idempotency } = run;
  const args = {
    runId: run.runId,
    project: run.projectId,
    app: run.app,
    createdAt: run.createdAt,
    method: run.method,
    path: run.path,
    ...(run.query !== undefined && { query: run.query }),
    headers: run.headers,
    ...(webhook && { target: webhook.target }),
    ...(webhook?.confidential.authorization !== undefined && {
      authorization: webhook.confidential.authorization,
    }),
    ...spooledSize(body, requestFile(run.runId), spool),
    ...(idempotency && { key: idempotency.key }),
  };
  return [args, [bytesOf(body), webhook?.confidential.secret, idempotency?.fingerprint]];
}

type EndArgs = Pick<Args<'endRun'>, 'fileSize' | 'delivery'>;

function ending(
  outcome: RunOutcome,
  runId: string,
  spool: Pick<Spool, 'path'>,
): [args: EndArgs, blobs: Blobs] {
  if ('delivery' in outcome) {
    const [delivery, blobs] = insertion(outcome.delivery, spool);
    return [{ delivery }, blobs];
  }
  return [spooledSize(outcome.result, runId, spool), [bytesOf(outcome.result)]];
}
