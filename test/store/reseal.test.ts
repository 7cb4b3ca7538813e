import { describe, expect, it } from 'vitest';
import { reseal } from '../../src/store/reseal.ts';
import { createKeyring, seal, sealHeaders, unseal, unsealHeaders } from '../../src/store/seal.ts';
import type { StoredWaitingRun } from '../../src/store/stored.ts';
import { newRun } from './samples.ts';

const [OURS, THEIRS, NOBODYS] = [1, 2, 3].map(byte => new Uint8Array(32).fill(byte)) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
];
const keys = { from: createKeyring([OURS, THEIRS]), to: createKeyring([THEIRS]) };
const confidential = { authorization: 'Basic abc' };
const HEADERS = ['cookie', 'a=1'];

/** With and without a webhook that has something to seal. */
function stored(key: Uint8Array, secret: boolean): StoredWaitingRun {
  const { runId, projectId, app, createdAt, method, path } = newRun();
  const keyring = createKeyring([key]);
  const run = { runId, projectId, app, createdAt, method, path, position: 1, starts: 0, cancelled: false };
  return {
    ...run,
    headers: sealHeaders(HEADERS, runId, keyring),
    ...(secret && { sealed: seal(confidential, runId, keyring)! }),
  };
}

describe.each([true, false])('a run that waits (with a secret: %s)', secret => {
  it('is sealed anew, in all its parts, where the other store lacks the key', () => {
    const run = stored(OURS, secret);
    const { headers, sealed, ...rest } = reseal('waiting', run, keys);
    expect(unsealHeaders(headers, run.runId, keys.to)).toEqual(HEADERS);
    expect(sealed && unseal(sealed, run.runId, keys.to)).toEqual(secret ? confidential : undefined);
    expect(run).toMatchObject(rest);
  });

  it.each([
    ['the other store has the key', THEIRS],
    ['nothing opens it', NOBODYS],
  ])('stays as it is where %s', (_, key) => {
    const run = stored(key, secret);
    expect(reseal('waiting', run, keys)).toBe(run);
  });
});

it('a run whose secret alone is unreadable stays as it is: it has one key for both', () => {
  const run = stored(OURS, true);
  const broken = { ...run, sealed: { ...run.sealed!, sealed: new Uint8Array(40) } };
  expect(reseal('waiting', broken, keys)).toBe(broken);
});
