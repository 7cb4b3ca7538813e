/**
 * What is around every view: the ways to the others, the project that is looked at, and the box that jumps to a
 * run.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { get } from '../api/client.ts';
import type { AppList } from '../api/shapes.ts';
import { go, hrefOf, parameter, path, withParameters } from '../location.ts';
import { useResource } from '../resource.ts';
import { logOut, session } from '../session.ts';
import { JumpBox } from './jump-box.tsx';

const PLACES = [
  ['/', 'Overview'],
  ['/deliveries', 'Deliveries'],
  ['/runs', 'Runs'],
  ['/apps', 'Apps'],
  ['/health', 'Health'],
] as const;

export function Frame({ children }: { readonly children: ComponentChildren }) {
  const main = useRef<HTMLElement>(null);
  const place = path.value;
  useEffect(() => {
    const heading = main.current?.querySelector('h1')?.textContent;
    document.title = heading === undefined || heading === null ? 'Afterword' : `${heading} · Afterword`;
  }, [place]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={event => skip(event, main.current)}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <img src="/favicon.svg" alt="" width="24" height="24" />
          Afterword
        </a>
        <nav aria-label="Views">
          {PLACES.map(([href, name]) => (
            <a
              key={href}
              href={hrefOf(href, { project: parameter('project') })}
              aria-current={isWithin(place, href) ? 'page' : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
        <div class="tools">
          <ProjectChoice />
          <JumpBox />
          {session.value?.login_required === true && (
            <button type="button" class="quiet" onClick={() => void logOut()}>
              Log out
            </button>
          )}
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
      <footer class="bottom">
        Afterword {session.value?.version} ·{' '}
        <a href="/api/v1/openapi.json" target="_blank" rel="noreferrer">
          API
        </a>
      </footer>
    </div>
  );
}

/** Where several are served. */
function ProjectChoice() {
  const { state } = useResource({ key: 'projects', load: signal => get<AppList>('apps', {}, signal) });
  const chosen = parameter('project');
  const served = (state.value.data?.apps ?? []).map(app => app.project_id);
  const projects = [...new Set(chosen === undefined ? served : [...served, chosen])].sort();
  if (projects.length < 2) return null;
  return (
    <label class="inline">
      <span class="hidden">Project</span>
      <select
        value={chosen ?? ''}
        onChange={event => go(withParameters({ project: event.currentTarget.value, cursor: undefined }))}
      >
        <option value="">All projects</option>
        {projects.map(project => (
          <option key={project} value={project}>
            {project}
          </option>
        ))}
      </select>
    </label>
  );
}

function isWithin(place: string, href: string): boolean {
  return href === '/' ? place === '/' : place === href || place.startsWith(`${href}/`);
}

function skip(event: MouseEvent, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}
