/**
 * The way of a call from its beginning to its last attempt, each step with the time since the call came in.
 */
import type { ComponentChildren } from 'preact';
import type { DeliveryDetail } from '../../api/shapes.ts';
import { now } from '../../clock.ts';
import { duration } from '../../format.ts';
import { type AttemptStep, countdown, type Step, stepsOf } from '../../timeline.ts';
import { State } from '../../ui/parts.tsx';
import { AttemptDetail } from './attempt.tsx';

export function Timeline({
  delivery,
  ranMs,
}: {
  readonly delivery: DeliveryDetail;
  readonly ranMs: number | undefined;
}) {
  const steps = stepsOf(delivery, ranMs);
  const began = steps[0]!.at;
  return (
    <section class="panel" aria-labelledby="timeline">
      <h2 id="timeline">Timeline</h2>
      <ol class="timeline">
        {steps.map(step => (
          <li key={keyOf(step)} class={step.kind}>
            <Since step={step} began={began} />
            <div class="step">{contentOf(step, delivery)}</div>
          </li>
        ))}
      </ol>
    </section>
  );
}

function keyOf(step: Step): string {
  return step.kind === 'attempt' ? `${step.attempt.round}.${step.attempt.number}.${step.at}` : step.kind;
}

/** The next attempt has not been, so that nobody can say when it was. */
function Since({ step, began }: { readonly step: Step; readonly began: number }) {
  const at = new Date(step.at).toISOString();
  const passed = Math.max(0, step.at - began);
  return (
    <time class="since" dateTime={at} title={at}>
      {step.kind === 'called' ? clockTime(step.at) : step.kind !== 'next' && `+${duration(passed)}`}
    </time>
  );
}

function clockTime(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}

function contentOf(step: Step, delivery: DeliveryDetail): ComponentChildren {
  switch (step.kind) {
    case 'called':
      return delivery.run === undefined ? 'The call came in' : 'The call came in, and was queued';
    case 'begun':
      return `Run begun, after ${duration(step.waitedMs)} in the queue${step.starts > 1 ? `, at start ${step.starts}` : ''}`;
    case 'ran':
      return (
        <>
          <b>{delivery.app}</b> answered <span class="mono">{step.status}</span>
          {step.ms !== undefined && ` after ${duration(step.ms)}`}
        </>
      );
    case 'captured':
      return 'The answer was captured for delivery';
    case 'attempt':
      return <Attempted step={step} />;
    case 'next':
      return <NextAttempt at={step.at} />;
    case 'settled':
      return <State state={step.state} reason={step.reason} />;
  }
}

function Attempted({ step }: { readonly step: AttemptStep }) {
  const { attempt, pauseMs, opensRound, repeated } = step;
  return (
    <>
      {opensRound && (
        <p>
          <b>Round {attempt.round}</b>
          {attempt.target !== undefined && (
            <>
              {' '}
              to <code>{attempt.target}</code>
            </>
          )}
        </p>
      )}
      {pauseMs !== undefined && <p class="pause">paused {duration(pauseMs)}</p>}
      <AttemptDetail attempt={attempt} explained={!repeated} />
    </>
  );
}

function NextAttempt({ at }: { readonly at: number }) {
  const left = countdown(at, now.value);
  return (
    <span class="busy">
      {left === undefined ? 'An attempt is due, or under way' : `Next attempt ${left}`}
    </span>
  );
}
