/**
 * What goes from one store to another is sealed anew where the other has no key for it. What nothing opens
 * stays as it is, as unreadable as before.
 */
import { type Keyring, seal, type Sealed, sealHeaders, unseal, unsealHeaders } from './seal.ts';
import type { Part, Stored, StoredDelivery, StoredWaitingRun } from './stored.ts';

export interface Keyrings {
  readonly from: Keyring;
  readonly to: Keyring;
}

/** The same object where nothing had to be done. */
type Reseal<T> = (stored: T, keys: Keyrings) => T;

const RESEAL: { readonly [P in Part]: Reseal<Stored[P]> } = {
  pending: resealDelivery,
  settled: resealDelivery,
  waiting: resealRun,
  kept: run => run,
  delivered: run => run,
  keys: key => key,
};

export function reseal<P extends Part>(part: P, stored: Stored[P], keys: Keyrings): Stored[P] {
  return RESEAL[part](stored, keys);
}

function resealDelivery(delivery: StoredDelivery, keys: Keyrings): StoredDelivery {
  const { runId } = delivery;
  const sealed = sealedAnew(delivery.sealed, runId, keys);
  const otherSealed = sealedAnew(delivery.otherSealed, runId, keys);
  if (sealed === undefined && otherSealed === undefined) return delivery;
  return { ...delivery, ...(sealed && { sealed }), ...(otherSealed && { otherSealed }) };
}

/** Undefined where it can stay, or has to. */
function sealedAnew(sealed: Sealed | undefined, runId: string, { from, to }: Keyrings): Sealed | undefined {
  if (sealed === undefined || to.keys.has(sealed.keyId)) return undefined;
  const confidential = unseal(sealed, runId, from);
  return confidential && seal(confidential, runId, to);
}

/** Both that is sealed in it, or nothing: a run has one key. */
function resealRun(run: StoredWaitingRun, { from, to }: Keyrings): StoredWaitingRun {
  const { headers, sealed, runId } = run;
  if (to.keys.has(headers.keyId)) return run;
  const opened = unsealHeaders(headers, runId, from);
  const confidential = sealed && unseal(sealed, runId, from);
  if (opened === undefined || (sealed !== undefined && confidential === undefined)) return run;
  return {
    ...run,
    headers: sealHeaders(opened, runId, to),
    ...(confidential && { sealed: seal(confidential, runId, to)! }),
  };
}
