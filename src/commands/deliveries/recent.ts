/**
 * Remembers what it was told, up to so many keys: the oldest are forgotten.
 */
export class Recent<Key, Value> {
  readonly #most: number;
  readonly #kept = new Map<Key, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: Key): Value | undefined {
    return this.#kept.get(key);
  }

  set(key: Key, value: Value): void {
    this.#kept.delete(key); // it is as new as its last value
    this.#kept.set(key, value);
    if (this.#kept.size > this.#most) this.#kept.delete(this.#kept.keys().next().value!);
  }
}
