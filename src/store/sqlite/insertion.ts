/** What the store is given to write, in the form of an operation of the database. */
import type { NewBody, NewDelivery } from '../store.ts';
import type { Args, Blobs } from './protocol.ts';
import type { Spool } from './spool.ts';

type SpoolPath = Pick<Spool, 'path'>;

export function insertion(delivery: NewDelivery, spool: SpoolPath): [args: Args<'insert'>, blobs: Blobs] {
  const { runId, body, confidential } = delivery;
  const args = {
    runId,
    project: delivery.projectId,
    app: delivery.app,
    target: delivery.target,
    status: delivery.statusCode,
    createdAt: delivery.createdAt,
    ...(confidential.authorization !== undefined && { authorization: confidential.authorization }),
    ...(delivery.traceparent !== undefined && { traceparent: delivery.traceparent }),
    ...spooledSize(body, runId, spool),
    owned: delivery.owned,
    ...(delivery.begunAt !== undefined && { begunAt: delivery.begunAt }),
  };
  return [args, [bytesOf(body), confidential.secret]];
}

/** The size of a body in a file, which must be the spool's file of that name. */
export function spooledSize(
  body: NewBody | undefined,
  name: string,
  spool: SpoolPath,
): { fileSize?: number } {
  if (body === undefined || 'bytes' in body) return {};
  if (body.file !== spool.path(name)) {
    throw new Error(`the body of run ${name} is not in the spool: ${body.file}`);
  }
  return { fileSize: body.size };
}

export function bytesOf(body: NewBody | undefined): Uint8Array | undefined {
  return body && 'bytes' in body ? body.bytes : undefined;
}
