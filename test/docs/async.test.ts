/**
 * Keeps docs/async.md true: its tables are those of the code, its examples are what a running service answers,
 * and its commands exist.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PROBLEMS, type ProblemCode } from '../../src/errors.ts';
import type { RunState } from '../../src/store/runs.ts';
import { run } from '../commands/run.ts';
import { openApp, type TestApp } from '../support/app.ts';
import { type Inbox, openInbox } from '../support/inbox.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/waiting.ts';
import { codeBlocksOf, namesIn, readDocument, sectionOf, tableOf } from './markdown.ts';

type Json = Record<string, unknown>;

const text = readDocument('docs/async.md');
const examples = new Map(
  codeBlocksOf(text)
    .filter(({ label }) => label.startsWith('example='))
    .map(({ label, text: json }) => [label.slice('example='.length), JSON.parse(json) as Json]),
);

it('lists every state, and no other', () => {
  const states: Record<RunState, true> = {
    queued: true,
    running: true,
    succeeded: true,
    failed: true,
    cancelled: true,
  };
  const told = tableOf(sectionOf(text, 'States'), 'state').flatMap(([state]) => namesIn(state!));
  expect(told).toEqual(Object.keys(states));
});

it('gives the statuses that errors have', () => {
  for (const [types, status] of tableOf(sectionOf(text, 'States'), '`error.type`')) {
    for (const type of namesIn(types!)) {
      expect([type, PROBLEMS[type as ProblemCode].status]).toEqual([type, Number(status)]);
    }
  }
});

it('names options that the commands have', async () => {
  const lines = sectionOf(text, 'From the command line').matchAll(/^afterword (call|runs \w+) (.*)$/gm);
  const named = [...lines].map(([, command, rest]) => [command!, rest!.match(/--[\w-]+/g) ?? []] as const);
  expect(named.length).toBeGreaterThan(5);
  for (const [command, options] of named) {
    const { stdout } = await run([...command.split(' '), '--help']);
    expect(options.filter(option => !stdout.includes(`${option} `))).toEqual([]);
  }
});

let app: TestApp;
let inbox: Inbox;
let service: TestService;
const ANSWER = '{"label":"cat","score":0.97}';
/** The app answers when it is told to. */
const answered = Promise.withResolvers<void>();

beforeAll(async () => {
  inbox = await openInbox();
  app = await openApp((req, res) => {
    if (req.url === '/teapot') res.writeHead(418).end();
    else void answered.promise.then(() => res.setHeader('Content-Type', 'application/json').end(ANSWER));
  });
  service = await startService({ apps: { model: { runtime: 'custom', url: app.url } } });
});

afterAll(async () => {
  await service.stop();
  await app.close();
  await inbox.close();
});

async function ask(path: string, method = 'GET'): Promise<Json> {
  const headers = { Authorization: `Bearer ${service.token}` };
  const response = await fetch(`${service.base}${path}`, { method, headers });
  return (await response.json()) as Json;
}

/** What differs from run to run; the order of the fields stays. */
function settled(body: Json | undefined): string {
  const differs = /^(?:run_id|project_id|target|run_time_ms|timestamp|\w+_at)$/;
  return JSON.stringify(body, (key, value) => (differs.test(key) ? typeof value : value));
}

it('shows a run from its 202 to its end', async () => {
  const accepted = await ask(service.path('model/predict?async=true', inbox.url), 'POST');
  expect(settled(accepted)).toBe(settled(examples.get('accepted')));

  const look = service.path(`_runs/${String(accepted['run_id'])}`);
  await until(async () => (await ask(look))['state'] === 'running');
  expect(settled(await ask(look))).toBe(settled(examples.get('running')));

  answered.resolve();
  await ask(`${look}?wait=30s`);
  await until(async () => ((await ask(look))['delivery'] as Json)['state'] === 'delivered');
  expect(settled(await ask(look))).toBe(settled(examples.get('succeeded')));
});

it('shows a list', async () => {
  const { run_id: runId } = await ask(service.path('model/teapot?async=true'), 'POST');
  await ask(service.path(`_runs/${String(runId)}?wait=30s`));
  const page = await ask(service.path('_runs?state=failed'));
  expect(settled(page)).toBe(settled(examples.get('list')));
});

it('every field of a run is in the contract', () => {
  const contract = readDocument('docs/contract.md');
  const fieldsIn = (section: string) =>
    tableOf(sectionOf(contract, section), 'field').flatMap(([field]) => namesIn(field!));
  const told = new Set([...fieldsIn('Runs'), ...fieldsIn('The body of a delivery')]);
  const shown = [examples.get('running')!, examples.get('succeeded')!].flatMap(each => Object.keys(each));
  expect(shown.filter(field => !told.has(field))).toEqual([]);
});
