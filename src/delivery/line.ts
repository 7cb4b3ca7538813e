/**
 * A line that entries join at the end and leave from any place, in constant time: a doubly linked list.
 */

/** Where a value stands in a line. */
export interface Place<T> {
  readonly value: T;
  before: Place<T> | undefined;
  after: Place<T> | undefined;
}

export class Line<T> {
  #first: Place<T> | undefined;
  #last: Place<T> | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(value: T): Place<T> {
    const place: Place<T> = { value, before: this.#last, after: undefined };
    if (this.#last === undefined) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
    this.#length += 1;
    return place;
  }

  /** The place must be one that this line gave out and that was not removed before. */
  remove({ before, after }: Place<T>): void {
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    this.#length -= 1;
  }

  shift(): T | undefined {
    const first = this.#first;
    if (first !== undefined) this.remove(first);
    return first?.value;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let place = this.#first; place !== undefined; place = place.after) yield place.value;
  }
}
