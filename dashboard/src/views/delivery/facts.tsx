/**
 * What is known of a delivery at a glance.
 */
import type { ComponentChildren } from 'preact';
import type { DeliveryDetail } from '../../api/shapes.ts';
import { hrefOf } from '../../location.ts';
import { Ago, CopyButton, State } from '../../ui/parts.tsx';

const REASONS = {
  exhausted: 'all attempts failed',
  rejected: 'by the receiver’s answer',
  blocked: 'its address is not allowed',
} as const;

export function Facts({ delivery }: { readonly delivery: DeliveryDetail }) {
  const { run_id, state, reason, app, project_id, status_code, target, own_target, trace_id, run } = delivery;
  return (
    <dl class="known panel">
      <Fact name="State">
        <output>
          <State state={state} reason={reason} />
        </output>
        {reason !== undefined && <span class="faint">{REASONS[reason]}</span>}
      </Fact>
      <Fact name="App">
        <a href={hrefOf('/deliveries', { project: project_id, app })}>{app}</a>
      </Fact>
      <Fact name="Project">{project_id}</Fact>
      <Fact name="Caller got">
        <span class="mono">{status_code}</span>
      </Fact>
      <Fact name="Answered">
        <Ago at={delivery.created_at} />
      </Fact>
      {run !== undefined && (
        <Fact name="Asynchronous">
          <a href={`/runs/${run_id}`}>Its run</a>
        </Fact>
      )}
      <Fact name="Target" wide>
        <code>{target}</code>
      </Fact>
      {own_target !== undefined && (
        <Fact name="Target of the call" wide>
          <code>{own_target}</code>
        </Fact>
      )}
      {trace_id !== undefined && (
        <Fact name="Trace id" wide>
          <code>{trace_id}</code>
          <CopyButton text={() => trace_id}>Copy trace id</CopyButton>
        </Fact>
      )}
    </dl>
  );
}

export function Fact({
  name,
  wide = false,
  children,
}: {
  readonly name: string;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <div class={wide ? 'wide' : undefined}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
