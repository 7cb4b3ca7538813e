import { describe, expect, it } from 'vitest';
import { createVerifiedTokens } from '../../src/gateway/tokens.ts';

const token = { projectId: 'p', from: 1_000, until: 2_000 };

describe('verified tokens', () => {
  it.each([
    ['p', 999, false],
    ['p', 1_000, true],
    ['p', 1_999, true],
    ['p', 2_000, false],
    ['q', 1_500, false],
  ])('for %s at %i: %s', (projectId, now, expected) => {
    const tokens = createVerifiedTokens(4);
    tokens.add('k', token);
    expect(tokens.has('k', projectId, now)).toBe(expected);
    expect(tokens.has('other', projectId, now)).toBe(false);
  });

  it('replaces an entry of the same key', () => {
    const tokens = createVerifiedTokens(4);
    tokens.add('k', token);
    tokens.add('k', { ...token, until: 3_000 });
    expect(tokens.has('k', 'p', 2_500)).toBe(true);
  });

  it('holds no more than its capacity, and keeps what is used', () => {
    const capacity = 100;
    const tokens = createVerifiedTokens(capacity);
    tokens.add('busy', token);
    for (let number = 0; number < 10 * capacity; number++) {
      tokens.add(`k${number}`, token);
      expect(tokens.has('busy', 'p', 1_500)).toBe(true);
    }
    const held = Array.from({ length: 10 * capacity }, (_, number) => `k${number}`).filter(key =>
      tokens.has(key, 'p', 1_500),
    );
    expect(held.length).toBeGreaterThan(0);
    expect(held.length).toBeLessThanOrEqual(capacity);
  });
});
