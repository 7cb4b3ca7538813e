/**
 * The rows of a batch, as a statement takes them: an array for each column.
 *
 * Every array comes out of a subquery, which hides its length from the planner. It then plans for a few rows,
 * whatever the batch, and looks each of them up by its id. Told that there are hundreds, and by counts that were
 * taken while the queue was empty, it would rather read the whole queue, which may have a million rows by now.
 */

/** Name and type of each column. */
export type Columns = readonly (readonly [name: string, type: string])[];

/** For FROM; `first` is the number of the parameter of the first column. */
export function givenRows(columns: Columns, first: number): string {
  const arrays = columns.map(([, type], index) => `(SELECT $${first + index}::${type}[])`);
  return `unnest(${arrays.join(', ')}) AS g (${columns.map(([name]) => name).join(', ')})`;
}
