/**
 * Another target for a round by hand, judged as the `webhookEndpoint` of a call is.
 */
import type { TargetPolicy } from '../delivery/target.ts';
import { readTargetUrl } from '../delivery/target-url.ts';
import { Problem } from '../errors.ts';
import type { OtherTarget } from '../store/ledger.ts';

export function readTarget(value: string, policy: Pick<TargetPolicy, 'judgeUrl'>): OtherTarget {
  const target = readTargetUrl(value);
  if ('wrong' in target)
    throw new Problem('invalid_body', `The body is not acceptable: target ${target.wrong}`);
  const { url, authorization } = target;
  const verdict = policy.judgeUrl(url);
  if (!verdict.allowed) {
    throw new Problem('forbidden_target', `target names a forbidden address (${verdict.reason})`);
  }
  return { target: url.href, ...(authorization !== undefined && { authorization }) };
}
