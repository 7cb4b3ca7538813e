/**
 * One attempt: what came of it, what its time was spent on, and what the receiver answered.
 */
import type { Attempt, Timings } from '../../api/shapes.ts';
import { duration } from '../../format.ts';
import { foundConnectionOpen, isMeasured, phasesOf, phaseText } from '../../timeline.ts';
import { outcomeOf } from '../../timeline-outcome.ts';
import { TextView } from './text-view.tsx';

export interface AttemptDetailProps {
  readonly attempt: Attempt;
  /** Whether to say what came of it: where the next came to the same, that is said there. */
  readonly explained: boolean;
}

export function AttemptDetail({ attempt, explained }: AttemptDetailProps) {
  const { number, trigger, timings } = attempt;
  const { tone, title, meaning, advice } = outcomeOf(attempt);
  return (
    <>
      <div class="row">
        <h3>Attempt {number}</h3>
        <span class={`state mono ${tone}`}>{title}</span>
        {trigger === 'manual' && <span class="state">manual</span>}
        {isMeasured(timings) && <span class="faint">took {duration(timings.total)}</span>}
      </div>
      {explained && meaning !== undefined && (
        <p>
          {meaning} <span class="faint">{advice}</span>
        </p>
      )}
      <Phases timings={timings} />
      <ReceiverAnswer attempt={attempt} />
    </>
  );
}

/** A bar in proportion, as long for a short attempt as for a long one, and the same in numbers. */
function Phases({ timings }: { readonly timings: Timings }) {
  if (!isMeasured(timings)) return <p class="faint">Its times are not known.</p>;
  const phases = phasesOf(timings);
  return (
    <div class="phases">
      <div class="phase-bar" aria-hidden="true">
        {phases.map(({ name, share }) => (
          <i key={name} class={name} style={{ width: `${share * 100}%` }} />
        ))}
      </div>
      <ul aria-label="Time spent">
        {phases.map(({ name, ms }) => {
          const { label, title } = phaseText(name, timings);
          return (
            <li key={name} title={title}>
              <i class={name} aria-hidden="true" />
              {label} <b>{duration(ms)}</b>
            </li>
          );
        })}
        {foundConnectionOpen(timings) && <li>The connection was open already</li>}
      </ul>
    </div>
  );
}

function ReceiverAnswer({ attempt }: { readonly attempt: Attempt }) {
  const { excerpt = '', excerpt_encoding, headers, status } = attempt;
  if (status === undefined) return null;
  if (excerpt === '' && headers === undefined) return <p class="faint">The answer had no body.</p>;
  return (
    <details>
      <summary>
        Answer{' '}
        <span class="faint mono">{excerpt_encoding === undefined ? excerpt.slice(0, 200) : 'bytes'}</span>
      </summary>
      <TextView
        label={`Answer to attempt ${attempt.number}`}
        text={excerpt}
        headers={headers}
        encoded={excerpt_encoding === 'base64'}
        empty="The answer had no body."
      />
    </details>
  );
}
