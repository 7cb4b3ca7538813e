/**
 * The receivers with the most attempts that failed, each a way to its failed deliveries.
 */
import type { Stats } from '../../api/shapes.ts';
import { grouped, percent } from '../../format.ts';
import { hrefOf } from '../../location.ts';
import { type Told, wordsOf } from '../../stats.ts';
import { Scroll } from '../../ui/scroll.tsx';

/** The service counts receivers beyond a number of them under this name. */
const REST = 'other';

export function FailingHosts({ told }: { readonly told: Told }) {
  const { window, project, stats } = told;
  return (
    <section class="panel" aria-labelledby="failing">
      <h2 id="failing">Top failing hosts</h2>
      {stats.failing_hosts.length === 0 ? (
        <p class="faint">No attempt has failed in {wordsOf(window)}.</p>
      ) : (
        <Scroll class="bleed" label="Top failing hosts, as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">Host</th>
                <th scope="col" class="number">
                  Failed attempts
                </th>
                <th scope="col" class="number">
                  Attempts
                </th>
                <th scope="col">Share that failed</th>
              </tr>
            </thead>
            <tbody>
              {stats.failing_hosts.map(each => (
                <Host
                  key={each.host}
                  {...each}
                  href={hrefOf('/deliveries', { state: 'failed', host: each.host, since: window, project })}
                />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}

function Host({
  host,
  attempts,
  failures,
  href,
}: Stats['failing_hosts'][number] & { readonly href: string }) {
  const share = attempts === 0 ? 0 : failures / attempts;
  return (
    <tr>
      <td class="wide" title={host}>
        {host === REST ? 'all others' : <a href={href}>{host}</a>}
      </td>
      <td class="number">{grouped(failures)}</td>
      <td class="number">{grouped(attempts)}</td>
      <td>
        <span class="share">
          <span class="bar" aria-hidden="true">
            <span style={{ width: `${share * 100}%` }} />
          </span>
          {percent(share)}
        </span>
      </td>
    </tr>
  );
}
