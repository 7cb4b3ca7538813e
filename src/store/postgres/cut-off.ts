/** The errors of attempts that somebody else records, since whoever made them will not, or may not. */

/** Its owner lost the delivery, or gave it up. */
export const INTERRUPTED = 'interrupted';
/** The delivery was ended by hand. */
export const CANCELLED = 'cancelled';
