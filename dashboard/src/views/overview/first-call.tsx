/**
 * What is shown where nothing has happened: how to make something happen.
 */
import { get } from '../../api/client.ts';
import type { AppList } from '../../api/shapes.ts';
import { useResource } from '../../resource.ts';
import { type Told, wordsOf } from '../../stats.ts';
import { CopyButton } from '../../ui/parts.tsx';
import { Scroll } from '../../ui/scroll.tsx';

export function FirstCall({ told: { window, project } }: { readonly told: Told }) {
  const { state } = useResource({
    key: project ?? '',
    load: signal => get<AppList>('apps', { project }, signal),
  });
  const { project_id, app } = state.value.data?.apps[0] ?? { project_id: project ?? 'PROJECT', app: 'APP' };
  const command = [
    `curl 'http://${location.hostname}:8080/v4/${project_id}/${app}/run?webhookEndpoint=https%3A%2F%2Freceiver.example%2Fhook' \\`,
    `  -H "Authorization: Bearer $TOKEN" \\`,
    `  -H 'Content-Type: application/json' -d '{"name":"Ada"}'`,
  ].join('\n');
  return (
    <section class="panel" aria-labelledby="first-call">
      <h2 id="first-call">No calls in {wordsOf(window)}</h2>
      <p>
        Rates, latencies and failures are drawn here. For a first one, call a function and name a webhook for
        its answer:
      </p>
      <Scroll class="command" label="A call with a webhook">
        <pre>{command}</pre>
      </Scroll>
      <div class="row">
        <CopyButton text={() => command}>Copy</CopyButton>
        <span class="faint">
          Calls come in at <code>listen</code> of the configuration (port 8080 by default).{' '}
          <code>npm start</code> prints such a call with a token and a receiver of its own.
        </span>
      </div>
    </section>
  );
}
