/**
 * Claims from the store, one batch at a time, for as long as there is room and the store may have more.
 */
import type { PendingDelivery, Store } from '../store/store.ts';

export interface ClaimsOptions {
  readonly store: Pick<Store, 'claim' | 'tenure'>;
  /** How many to claim now; 0 when none may be taken in. */
  readonly room: () => number;
  readonly takeIn: (claimed: readonly PendingDelivery[]) => void;
  /** Gets the work of each batch, which goes on by itself. */
  readonly track: (work: Promise<void>) => void;
}

export interface Claims {
  /** The store may have unowned deliveries again. */
  expect(): void;
  /** Claims a batch, if that is worth while. */
  look(): void;
}

export function createClaims({ store, room, takeIn, track }: ClaimsOptions): Claims {
  let expected = true;
  let claiming = false;

  function look(): void {
    // Without a tenure, what is claimed might be gone again at once.
    if (!expected || claiming || store.tenure === undefined) return;
    const limit = room();
    if (limit === 0) return;
    expected = false;
    claiming = true;
    track(claimBatch(limit));
  }

  async function claimBatch(limit: number): Promise<void> {
    try {
      const claimed = await store.claim(limit);
      // Fewer than asked for does not mean that there are no more.
      if (claimed.length > 0) expected = true;
      takeIn(claimed);
    } catch (error) {
      expected = true;
      throw error;
    } finally {
      claiming = false;
    }
    look();
  }

  return {
    expect() {
      expected = true;
      look();
    },
    look,
  };
}
