/**
 * The tables of outcomes in the documents, as rows that can be asked what an attempt's result means.
 */
import { ATTEMPT_ERRORS, judgeOutcome, type Result, type Verdict } from '../../src/delivery/outcome.ts';
import { tableOf } from './markdown.ts';

const STATUSES: readonly Result[] = Array.from({ length: 500 }, (_, index) => ({ status: index + 200 }));
const ERRORS: readonly Result[] = ATTEMPT_ERRORS.map(error => ({ error }));

/** What the first cell of a row covers; the first row that covers a result is its row. */
const ROWS: ReadonlyArray<readonly [RegExp, (result: Result) => boolean]> = [
  [/^2xx$/, ({ status = 0 }) => status >= 200 && status < 300],
  [/^404$/, ({ status }) => status === 404],
  [/^any other 4xx$/, ({ status = 0 }) => status >= 400 && status < 500 && status !== 404],
  [/^(?:any )?5xx$/, ({ status = 0 }) => status >= 500 && status < 600],
  [/^3xx, and anything else$/, ({ status = 0 }) => (status >= 300 && status < 400) || status >= 600],
  [/^none, since the address is refused$/, ({ error }) => error === 'blocked_target'],
  [/^none(?::| \()/, ({ error }) => error !== undefined && error !== 'blocked_target'],
];

export interface OutcomeRow {
  readonly answer: string;
  readonly told: string;
  /** What the code makes of everything that the row covers. */
  readonly verdicts: readonly Verdict[];
}

export function outcomeRows(text: string): OutcomeRow[] {
  return tableOf(text, "receiver's answer").map(([answer = '', told = '']) => {
    const covers = ROWS.find(([pattern]) => pattern.test(answer))?.[1];
    if (covers === undefined) throw new Error(`nobody knows what this row covers: ${answer}`);
    const covered = [...STATUSES, ...ERRORS].filter(covers);
    return { answer, told, verdicts: [...new Set(covered.map(judgeOutcome))] };
  });
}
