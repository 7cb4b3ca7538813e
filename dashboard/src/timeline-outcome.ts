/**
 * What came of an attempt, in two sentences: what it means, and what to do about it. Where there was no answer,
 * the service says so itself; what a status means follows from the contract of deliveries.
 */
import type { Attempt } from './api/shapes.ts';

export interface Outcome {
  readonly tone: 'good' | 'bad';
  /** A status, or the code of an error. */
  readonly title: string;
  readonly meaning?: string;
  readonly advice?: string;
}

interface Sentences {
  readonly meaning: string;
  readonly advice: string;
}

const BY_STATUS: Readonly<Record<number, Sentences>> = {
  401: {
    meaning: 'The receiver did not accept the signature or the credentials; it is not tried again.',
    advice: 'Compare the secret that the call was made with to that of the receiver, and then redeliver.',
  },
  403: {
    meaning: 'The receiver does not allow the delivery; it is not tried again.',
    advice:
      'Look for a firewall or a rule before the receiver that keeps the service out, and then redeliver.',
  },
  404: {
    meaning:
      'The receiver has nothing at this path, which may pass: it is tried again while attempts are left.',
    advice: 'Check the path of the target, and that this version of the receiver is up.',
  },
  410: {
    meaning: 'The receiver is gone for good; it is not tried again.',
    advice: 'Have callers name another webhookEndpoint, and redeliver this one elsewhere.',
  },
  413: {
    meaning: 'The delivery is too large for the receiver; it is not tried again.',
    advice: 'Raise the limit for bodies of the receiver, or of the proxy before it, and then redeliver.',
  },
  429: {
    meaning: 'The receiver had too much to do; it is not tried again.',
    advice: 'Have the receiver put deliveries into a queue of its own and answer 202, and then redeliver.',
  },
};

/** The first that holds. */
const BY_CLASS: readonly (readonly [from: number, Sentences])[] = [
  [
    500,
    {
      meaning: 'The receiver failed; it is not tried again, since part of the work may be done already.',
      advice: 'Look into the log of the receiver at that time, mend it, and then redeliver.',
    },
  ],
  [
    400,
    {
      meaning: 'The receiver refused the delivery; it is not tried again.',
      advice: 'Read in its answer what it did not like, mend it, and then redeliver.',
    },
  ],
  [
    300,
    {
      meaning:
        'The receiver points elsewhere. Redirects are not followed: it is tried again while attempts are left.',
      advice:
        'Redeliver to the address in the Location header of its answer, and have callers name that one.',
    },
  ],
  [
    0,
    {
      meaning: 'The receiver gave an answer that is no end: it is tried again while attempts are left.',
      advice: 'Have the receiver answer with a status from 200 to 299.',
    },
  ],
];

export function outcomeOf({ status, error }: Pick<Attempt, 'status' | 'error'>): Outcome {
  if (error !== undefined)
    return { tone: 'bad', title: error.code, meaning: error.meaning, advice: error.advice };
  if (status === undefined) return { tone: 'bad', title: 'no answer' };
  if (status >= 200 && status < 300) return { tone: 'good', title: `${status}` };
  // Beyond the classes that HTTP has, an answer is none of them.
  const from = status < 600 ? status : 0;
  const sentences = BY_STATUS[status] ?? BY_CLASS.find(([least]) => from >= least)![1];
  return { tone: 'bad', title: `${status}`, ...sentences };
}
