/**
 * An attempt that was not sent, or not to the end of its body, for reasons of our own. No receiver can have
 * taken it, so it is none: it is taken back instead of being recorded.
 *
 * not_permitted     it was counted in a tenure that has passed since;
 * body_unreadable   the body is there, but cannot be read at present.
 */
export type WithheldReason = 'not_permitted' | 'body_unreadable';

/** How it travels through what would otherwise send the attempt. */
export class WithheldError extends Error {
  override readonly name = 'WithheldError';
  readonly reason: WithheldReason;

  constructor(reason: WithheldReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
