/** A policy that tells what it refuses: of a URL when a call comes in, of an address when it is dialled. */
import type { BlockReason, TargetPolicy, Verdict } from './target.ts';

export type RefusalListener = (where: 'intake' | 'connect', reason: BlockReason) => void;

export function tellingRefusals(policy: TargetPolicy, refused: RefusalListener): TargetPolicy {
  const told = (where: 'intake' | 'connect', verdict: Verdict): Verdict => {
    if (!verdict.allowed) refused(where, verdict.reason);
    return verdict;
  };
  return {
    judge: (address, port, hostname) => told('connect', policy.judge(address, port, hostname)),
    judgeUrl: url => told('intake', policy.judgeUrl(url)),
  };
}
