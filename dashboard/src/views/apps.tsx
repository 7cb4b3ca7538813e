/**
 * Every app: where it is, how its processes stand, and what they have printed last.
 */
import { get } from '../api/client.ts';
import type { AppFacts, AppList } from '../api/shapes.ts';
import { grouped } from '../format.ts';
import { hrefOf, parameter } from '../location.ts';
import { useResource } from '../resource.ts';
import '../style/apps.css';
import { Ago, State, Waiting } from '../ui/parts.tsx';
import { Scroll } from '../ui/scroll.tsx';

const EVERY_MS = 5_000;

const PLACES = { url: 'by its URL', process: 'run here' } as const satisfies Record<
  AppFacts['place'],
  string
>;

/** Where the word of a state does not say enough. */
const WORDS: Readonly<Partial<Record<AppFacts['state'], string>>> = {
  elsewhere: 'Another program serves it, so how it stands shows only in the calls to it.',
  idle: 'Its first call starts it.',
  failing: 'None of its processes is up. What they printed last tells why.',
};

export function Apps() {
  const project = parameter('project');
  const { state, reload } = useResource({
    key: project ?? '',
    load: signal => get<AppList>('apps', { project }, signal),
    everyMs: EVERY_MS,
  });
  const { data, error } = state.value;
  return (
    <>
      <h1>Apps</h1>
      {(data === undefined || error !== undefined) && <Waiting of={state.value} onRetry={reload} />}
      {data?.apps.length === 0 && <NoApps />}
      {data?.apps.map(app => (
        <App key={`${app.project_id}/${app.app}`} {...app} />
      ))}
    </>
  );
}

function NoApps() {
  return (
    <section class="panel">
      <h2>No app is configured</h2>
      <p>
        An app is what calls go to: a function or a server that Afterword runs, or one that it reaches by a
        URL. Name it under <code>apps</code> of a project in the configuration, or begin with one that is
        there: <code>npm start -- examples/hello</code>
      </p>
    </section>
  );
}

function App(facts: AppFacts) {
  const { project_id, app, runtime, place, state, replicas, log } = facts;
  const headingId = `app-${project_id}-${app}`;
  return (
    <section class="panel hosted" aria-labelledby={headingId}>
      <div class="spread">
        <div class="row">
          <h2 id={headingId}>{app}</h2>
          <State state={state} />
        </div>
        <a href={hrefOf('/deliveries', { app, project: project_id })}>
          Deliveries<span class="hidden"> of {app}</span>
        </a>
      </div>
      <dl class="facts">
        <Fact name="Project">{project_id}</Fact>
        <Fact name="Runtime">{runtime}</Fact>
        <Fact name="Place">{PLACES[place]}</Fact>
        {facts.active_calls !== undefined && <Fact name="Active calls">{grouped(facts.active_calls)}</Fact>}
        {facts.waiting_calls !== undefined && (
          <Fact name="Waiting calls">{grouped(facts.waiting_calls)}</Fact>
        )}
      </dl>
      {WORDS[state] !== undefined && <p class="faint">{WORDS[state]}</p>}
      {replicas.length > 0 && <Replicas app={app} replicas={replicas} />}
      {place === 'process' && <Log app={app} log={log} />}
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Replicas({ app, replicas }: Pick<AppFacts, 'app' | 'replicas'>) {
  return (
    <Scroll label={`Replicas of ${app}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Replica</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              Active calls
            </th>
            <th scope="col" class="number">
              Restarts
            </th>
            <th scope="col" class="number">
              PID
            </th>
            <th scope="col">Started</th>
          </tr>
        </thead>
        <tbody>
          {replicas.map(({ index, state, active_calls, restarts, pid, started_at }) => (
            <tr key={index}>
              <th scope="row">{index}</th>
              <td>
                <State state={state} />
              </td>
              <td class="number">{grouped(active_calls)}</td>
              <td class="number">{grouped(restarts)}</td>
              <td class="number">{pid ?? '–'}</td>
              <td>{started_at === undefined ? '–' : <Ago at={started_at} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** What is unfolded stays so while it is read again: the element is the same one. */
function Log({ app, log }: Pick<AppFacts, 'app' | 'log'>) {
  if (log.length === 0) return <p class="faint">It has printed nothing yet.</p>;
  return (
    <details>
      <summary>Last log lines ({log.length})</summary>
      <Scroll class="log" label={`Last log lines of ${app}`}>
        <ol>
          {log.map(({ at, text }, index) => (
            <li key={`${at} ${index}`}>
              <time dateTime={at} title={at}>
                {timeOfDay.format(Date.parse(at))}
              </time>
              <span>{text}</span>
            </li>
          ))}
        </ol>
      </Scroll>
    </details>
  );
}

const timeOfDay = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
