/**
 * The frame of the page: the ways through it, and the view that the address names.
 */
import type { JSX } from 'preact';
import { path } from './location.ts';
import { openSession, session, unreachable } from './session.ts';
import { Frame } from './ui/frame.tsx';
import { Notices } from './ui/notices.tsx';
import { Apps } from './views/apps.tsx';
import { Deliveries } from './views/deliveries.tsx';
import { Delivery } from './views/delivery.tsx';
import { Health } from './views/health.tsx';
import { Login } from './views/login.tsx';
import { Overview } from './views/overview.tsx';
import { Run } from './views/run.tsx';
import { Runs } from './views/runs.tsx';

/** A name in the path of a view stands for what is looked at. */
const VIEWS: readonly (readonly [RegExp, (name: string) => JSX.Element])[] = [
  [/^\/$/, () => <Overview />],
  [/^\/deliveries$/, () => <Deliveries />],
  [/^\/deliveries\/([^/]+)$/, runId => <Delivery key={runId} runId={runId} />],
  [/^\/runs$/, () => <Runs />],
  [/^\/runs\/([^/]+)$/, runId => <Run key={runId} runId={runId} />],
  [/^\/apps$/, () => <Apps />],
  [/^\/health$/, () => <Health />],
];

export function App() {
  return (
    <>
      <Page />
      <Notices />
    </>
  );
}

function Page() {
  if (unreachable.value && session.value === undefined) return <Unreachable />;
  if (session.value === undefined) return <main class="alone" aria-busy="true" />;
  if (!session.value.logged_in) return <Login />;
  return <Frame>{viewOf(path.value)}</Frame>;
}

function viewOf(path: string): JSX.Element {
  for (const [pattern, view] of VIEWS) {
    const found = pattern.exec(path);
    if (found !== null) return view(found[1] ?? '');
  }
  return (
    <>
      <h1>Nothing is here</h1>
      <p>
        No view has the address <code>{path}</code>. <a href="/">Go to the overview</a>
      </p>
    </>
  );
}

function Unreachable() {
  return (
    <main class="alone">
      <h1>The service does not answer</h1>
      <p>It may be starting, or be gone.</p>
      <button type="button" class="primary" onClick={() => void openSession()}>
        Try again
      </button>
    </main>
  );
}
