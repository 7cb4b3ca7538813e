/**
 * The tokens found valid lately. Bounded by two generations: what is used moves to the young one, and when
 * that is full the old one is dropped, which keeps the busy tokens at the cost of one look-up a call.
 */

export interface VerifiedToken {
  readonly projectId: string;
  /** Honoured from here, in milliseconds since the epoch, … */
  readonly from: number;
  /** … to before here. */
  readonly until: number;
}

export interface VerifiedTokens {
  has(key: string, projectId: string, now: number): boolean;
  add(key: string, token: VerifiedToken): void;
}

export function createVerifiedTokens(capacity: number): VerifiedTokens {
  const generation = Math.ceil(capacity / 2);
  let young = new Map<string, VerifiedToken>();
  let old = new Map<string, VerifiedToken>();

  function add(key: string, token: VerifiedToken): void {
    if (young.size >= generation && !young.has(key)) {
      old = young;
      young = new Map();
    }
    young.set(key, token);
  }

  function has(key: string, projectId: string, now: number): boolean {
    let token = young.get(key);
    if (token === undefined) {
      token = old.get(key);
      if (token === undefined) return false;
      add(key, token);
    }
    return token.projectId === projectId && now >= token.from && now < token.until;
  }

  return { has, add };
}
