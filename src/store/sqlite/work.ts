/** Which operations leave work for a node to find. */
import type { Kind, Operation } from './protocol.ts';

/** Whose work it may become: that of other nodes, or that of any, also the one that asked for it. */
export type LeftTo = 'nobody' | 'others' | 'all';

/** What may leave something that nobody owns, mark a run that another node has, or make room for a run of its app. */
const TO_OTHERS: ReadonlySet<Kind> = new Set(['release', 'insertRun', 'withdrawRun', 'cancelRun', 'endRun']);

/** What was done by hand: the node that was asked is like any other. */
const TO_ALL: ReadonlySet<Kind> = new Set(['redeliver', 'addJob', 'stepJob']);

export function leftTo({ kind, args }: Pick<Operation, 'kind' | 'args'>): LeftTo {
  if (TO_ALL.has(kind)) return 'all';
  const others = TO_OTHERS.has(kind) || (kind === 'insert' && 'owned' in args && !args.owned);
  return others ? 'others' : 'nobody';
}
