/**
 * A run id that takes little room: its beginning and its end are seen, and all of it is there to be copied, found
 * and read out.
 */
export function RunId({ id, href }: { readonly id: string; readonly href: string }) {
  return (
    <a class="run-id mono" href={href} title={id}>
      {id.slice(0, 8)}
      <span class="cut">{id.slice(8, 28)}</span>
      {id.slice(28)}
    </a>
  );
}
