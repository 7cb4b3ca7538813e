/**
 * Which rows of a list are selected, by their ids. A range goes from the row that was chosen last.
 */

export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly last: string | undefined;
}

export const NONE_SELECTED: Selection = { ids: new Set(), last: undefined };

export function toggled({ ids }: Selection, id: string): Selection {
  return { ids: ids.has(id) ? without(ids, [id]) : new Set([...ids, id]), last: id };
}

/** All rows between the one chosen last and this one become what this one becomes. */
export function toggledTo(selection: Selection, id: string, shown: readonly string[]): Selection {
  const from = selection.last === undefined ? -1 : shown.indexOf(selection.last);
  const to = shown.indexOf(id);
  if (from === -1 || to === -1) return toggled(selection, id);
  const range = shown.slice(Math.min(from, to), Math.max(from, to) + 1);
  const { ids } = selection;
  return { ids: ids.has(id) ? without(ids, range) : new Set([...ids, ...range]), last: id };
}

/** All that are shown, or none where they all are selected already. */
export function toggledAll({ ids, last }: Selection, shown: readonly string[]): Selection {
  return shown.every(id => ids.has(id)) ? NONE_SELECTED : { ids: new Set([...ids, ...shown]), last };
}

/** Without those that are not shown any more: nothing is done to what cannot be seen. */
export function kept(selection: Selection, shown: readonly string[]): Selection {
  const ids = shown.filter(id => selection.ids.has(id));
  return ids.length === selection.ids.size ? selection : { ids: new Set(ids), last: selection.last };
}

function without(ids: ReadonlySet<string>, gone: readonly string[]): ReadonlySet<string> {
  const left = new Set(ids);
  for (const id of gone) left.delete(id);
  return left;
}
