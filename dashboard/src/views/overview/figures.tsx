/**
 * The numbers of a window in one row.
 */
import { count, duration, grouped, percent } from '../../format.ts';
import { hrefOf } from '../../location.ts';
import { perMinute, rate, type Told, wordsOf } from '../../stats.ts';
import { Ago, Figure } from '../../ui/parts.tsx';

export function Figures({ told: { window, project, stats, readAt } }: { readonly told: Told }) {
  const { totals, backlog, since } = stats;
  const { calls, call_errors, made, delivered, failed, success_rate, p50_ms, p95_ms } = totals;
  const ratio = (counted: number): string => rate(perMinute(counted, { since, now: readAt }));
  const within = `in ${wordsOf(window)}`;
  return (
    <dl class="figures">
      <Figure
        name="Calls per minute"
        note={
          call_errors === 0 ? `${count(calls)} ${within}` : `${count(calls)}, ${count(call_errors)} with 5xx`
        }
      >
        {ratio(calls)}
      </Figure>
      <Figure name="Deliveries per minute" note={`${count(made)} ${within}`}>
        {ratio(made)}
      </Figure>
      <Figure
        name="Success rate"
        note={
          success_rate === null
            ? 'no round has ended'
            : `${count(failed)} of ${count(delivered + failed)} failed`
        }
      >
        {success_rate === null ? '–' : percent(success_rate)}
      </Figure>
      <Figure name="First attempt, p50" note={p50_ms === null ? 'no attempts' : 'half are faster'}>
        {p50_ms === null ? '–' : duration(p50_ms)}
      </Figure>
      <Figure name="First attempt, p95" note={p95_ms === null ? 'no attempts' : '1 in 20 is slower'}>
        {p95_ms === null ? '–' : duration(p95_ms)}
      </Figure>
      <Figure
        name="Backlog"
        note={
          backlog.oldest_at === undefined ? (
            'nothing waits'
          ) : (
            <>
              oldest: <Ago at={backlog.oldest_at} />
            </>
          )
        }
      >
        <a href={hrefOf('/deliveries', { state: 'pending', project })}>
          {grouped(backlog.pending)} <span class="hidden">pending deliveries</span>
        </a>
      </Figure>
    </dl>
  );
}
