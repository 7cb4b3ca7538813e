/**
 * Keeps docs/operations.md true, and the rules and the dashboard beside it: their metrics and labels are what a
 * service really tells, and their log lines what it really writes.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { captureLog, type LogLine } from '../support/log.ts';
import { openInbox } from '../support/inbox.ts';
import { startService, type TestService } from '../support/service.ts';
import { openStage } from '../support/stage.ts';
import { codeBlocksOf, namesIn, readDocument, sectionOf, tableOf } from './markdown.ts';

const text = readDocument('docs/operations.md');

interface Told {
  readonly kind: string;
  /** The values of each label. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
}

let metrics: ReadonlyMap<string, Told>;
let lines: readonly LogLine[];

/** What a service tells after a call, a delivery that failed, a run, a question and a refusal. */
beforeAll(async () => {
  const captured = captureLog();
  const app = await openStage();
  const inbox = await openInbox(() => 400);
  const service = await startService({
    apps: { app: { runtime: 'custom', url: app.url } },
    log: captured.log,
  });
  const path = app.play((_req, res) => res.end('x'));
  const headers = { authorization: `Bearer ${service.token}` };
  const get = async (of: string): Promise<Response> => fetch(service.base + of, { headers });
  await get(service.path(`app/${path}`, inbox.url));
  const accepted = (await (await get(service.path(`app/${path}?async=true`))).json()) as { run_id: string };
  await get(service.path(`_runs/${accepted.run_id}?wait=10s`));
  await fetch(service.base + service.path('app/x'));
  lines = captured.lines;
  const isWritten = (msg: string): boolean => lines.some(line => line.msg === msg);
  await vi.waitUntil(() => ['delivery failed', 'run', 'request'].every(isWritten), { timeout: 10_000 });
  metrics = await read(service);
  await service.stop();
  await inbox.close();
  await app.close();
});

async function read({ admin }: TestService): Promise<Map<string, Told>> {
  const told = await (await fetch(`${admin}/metrics`)).text();
  const kinds = told.matchAll(/^# TYPE (\w+) (\w+)$/gm);
  const found = new Map([...kinds].map(([, name, kind]) => [name!, { kind: kind!, labels: new Map() }]));
  for (const [, series, inside] of told.matchAll(/^(\w+)\{(.*)\} \S+$/gm)) {
    for (const [, label, value] of inside!.matchAll(/(\w+)="([^"]*)"/g)) {
      const { labels } = found.get(series!) ?? found.get(baseOf(series!))!;
      if (label !== 'le') labels.set(label!, (labels.get(label!) ?? new Set<string>()).add(value!));
    }
  }
  return found;
}

/** The metric that a series of a histogram belongs to. */
const baseOf = (series: string): string => series.replace(/_(?:bucket|sum|count)$/, '');

describe('the table of metrics', () => {
  const rows = tableOf(sectionOf(text, 'Metrics'), 'metric');
  const documented = new Map(rows.map(([name, kind, labels]) => [namesIn(name!)[0]!, { kind, labels }]));

  it('has every metric that there is, by its name and kind', () => {
    const shown = [...documented].map(([name, { kind }]) => [name, kind] as const);
    const told = [...metrics].map(([name, { kind }]) => [name, kind] as const);
    expect(told.length).toBeGreaterThan(30);
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(told));
    expect(rows).toHaveLength(told.length);
  });

  it.each([...documented])('has every label of %s, with every value where it lists them', (name, row) => {
    const { labels } = metrics.get(name)!;
    const written = [...row.labels!.matchAll(/`(\w+)`(?: \(([^)]*)\))?(?:, |$)/g)];
    const shown = new Map(written.map(([, label, values]) => [label!, values && new Set(namesIn(values))]));
    const told = [...labels].map(([label, values]) => [label, shown.get(label) && values] as const);
    expect(shown).toEqual(new Map(told));
  });

  it('names metrics that exist everywhere else, too', () => {
    const named = namesIn(text).filter(name => name.startsWith('afterword_'));
    expect(named.filter(name => !metrics.has(name))).toEqual([]);
  });
});

/** What is wrong with the metrics and labels of an expression. */
function mistakesIn(expression: string): string[] {
  const series = [...expression.matchAll(/\b(afterword_\w+)(?:\{([^}]*)\})?/g)];
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels]) => labels!.split(', '));
  const labels = new Set(['job', 'instance', 'le']);
  const mistakes: string[] = [];
  for (const [, name, inside = ''] of series) {
    const told = metrics.get(name!) ?? metrics.get(baseOf(name!));
    if (told === undefined) mistakes.push(`there is no ${name}`);
    if (told?.kind === 'histogram' && name === baseOf(name!)) mistakes.push(`${name} is a histogram`);
    for (const label of told?.labels.keys() ?? []) labels.add(label);
    for (const [, label, values] of inside.matchAll(/(\w+)=~?"([^"]*)"/g)) {
      if (label === 'instance') continue;
      const unknown = values!.split('|').filter(value => told?.labels.get(label!)?.has(value) !== true);
      if (unknown.length > 0) mistakes.push(`${name} has no ${label} ${unknown.join(', ')}`);
    }
  }
  return [...mistakes, ...grouped.filter(label => !labels.has(label)).map(label => `no label ${label}`)];
}

it('a mistake in an expression is found', () => {
  expect(mistakesIn('rate(afterword_calls_total{status="5xx"}[5m]) > 0')).toEqual([]);
  expect(mistakesIn('sum by (job, le) (rate(afterword_call_duration_seconds_bucket[5m]))')).toEqual([]);
  expect(mistakesIn('afterword_calls')).toEqual(['there is no afterword_calls']);
  expect(mistakesIn('afterword_calls_total{status="6xx"}')).toEqual([
    'afterword_calls_total has no status 6xx',
  ]);
  expect(mistakesIn('sum by (host) (afterword_calls_total)')).toEqual(['no label host']);
  expect(mistakesIn('afterword_call_duration_seconds')).toHaveLength(1);
});

describe('the alert rules', () => {
  interface Rule {
    readonly alert: string;
    readonly expr: string;
    readonly labels: { readonly severity: string };
    readonly annotations: { readonly summary: string };
  }
  const document = parse(readDocument('docs/alerts.yaml')) as { groups: { rules: Rule[] }[] };
  const rules = document.groups.flatMap(group => group.rules);

  it.each(rules)('$alert is about metrics that exist', ({ expr, annotations }) => {
    expect(expr).toMatch(/\bafterword_|^up\{/);
    expect(mistakesIn(expr)).toEqual([]);
    expect(annotations.summary).not.toBe('');
  });

  it('are each explained, with their severity', () => {
    const explained = tableOf(sectionOf(text, 'Alerts'), 'alert');
    expect(explained.map(([name, severity]) => [...namesIn(name!), severity])).toEqual(
      rules.map(({ alert, labels }) => [alert, labels.severity]),
    );
  });

  it('watch the job that the example scrapes', () => {
    const example = codeBlocksOf(text).find(({ label }) => label === 'file=prometheus.yaml')!;
    const { scrape_configs: jobs } = parse(example.text) as { scrape_configs: { job_name: string }[] };
    expect(rules.map(({ expr }) => expr)).toContain(`up{job="${jobs[0]!.job_name}"} == 0`);
  });
});

describe('the dashboard for Grafana', () => {
  interface Panel {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly w: number };
    readonly targets?: readonly { readonly expr: string }[];
  }
  const { panels } = JSON.parse(readDocument('docs/grafana.json')) as { panels: Panel[] };
  const charts = panels.filter(({ type }) => type !== 'row');

  it.each(charts)('$title is about metrics that exist', ({ targets }) => {
    expect(targets!.length).toBeGreaterThan(0);
    for (const { expr } of targets!) {
      expect(expr).toContain('afterword_');
      expect(mistakesIn(expr)).toEqual([]);
    }
  });

  it('has panels that are told apart and fit', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  });

  it('shows every metric but when a process started', () => {
    const shown = charts.flatMap(({ targets }) => targets!.map(({ expr }) => expr)).join('\n');
    const missing = [...metrics.keys()].filter(name => !shown.includes(name));
    expect(missing).toEqual(['afterword_start_time_seconds']);
  });
});

describe('the table of log lines', () => {
  const rows = tableOf(sectionOf(text, 'Logs'), '`msg`').map(row => row.map(cell => namesIn(cell)));

  it.each(rows)('%s', ([msg], [level], _, fields) => {
    const written = lines.filter(line => line.msg === msg);
    expect(written.length).toBeGreaterThan(0);
    const known = new Set([...fields, 'time', 'level', 'msg']);
    for (const line of written) {
      expect(line.level).toBe(level);
      expect(Object.keys(line).filter(field => !known.has(field))).toEqual([]);
    }
  });

  it('has each line of the daily work', () => {
    const known = new Set([...rows.map(([msg]) => msg![0]!), 'ready', 'stopping']);
    expect(lines.map(({ msg }) => msg).filter(msg => !known.has(msg))).toEqual([]);
  });
});
