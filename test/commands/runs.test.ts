/**
 * `afterword runs` against a real service.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Inbox, openInbox } from '../support/inbox.ts';
import { startService, type TestService } from '../support/service.ts';
import { type AppHandler, openStage, type Stage } from '../support/stage.ts';
import { until } from '../support/waiting.ts';
import { run, type RunOptions } from './run.ts';

const UNKNOWN = '01a1dd95-24aa-770e-a088-7159dba3d142';

let stage: Stage<AppHandler>;
let inbox: Inbox;
let service: TestService;

beforeAll(async () => {
  stage = await openStage();
  inbox = await openInbox();
  service = await startService({
    apps: {
      web: { runtime: 'custom', url: stage.url },
      other: { runtime: 'custom', url: stage.url },
      // One run at a time, so that the others wait.
      narrow: { runtime: 'custom', url: stage.url, concurrency: 1 },
    },
  });
});

afterAll(async () => {
  await service.stop();
  await stage.close();
  await inbox.close();
});

const command = (argv: readonly string[], options: RunOptions = {}) =>
  run(argv, { ...options, env: { AFTERWORD_URL: service.base, AFTERWORD_TOKEN: service.token } });

/** Gives the id. */
async function runOf(app: string, handler: AppHandler, ...argv: string[]): Promise<string> {
  const { stdout } = await command(['call', `${app}/${stage.play(handler)}`, '--async', ...argv]);
  return stdout.trim();
}

const never: AppHandler = () => {};
const greet: AppHandler = (_, res) => res.end('hello');
const refuse: AppHandler = (_, res) => res.writeHead(418).end('no');

const idsIn = (stdout: string): string[] =>
  stdout
    .split('\n')
    .filter(line => line !== '')
    .map(line => (JSON.parse(line) as { run_id: string }).run_id);

describe('list', () => {
  it('prints lines of JSON, the newest first, filtered as asked', async () => {
    const [first, second] = [await runOf('web', greet), await runOf('other', refuse)];
    for (const runId of [first, second]) await command(['runs', 'show', runId, '--wait']);
    const listed = async (...argv: string[]) => idsIn((await command(['runs', 'list', ...argv])).stdout);
    expect((await listed()).slice(0, 2)).toEqual([second, first]);
    expect(await listed('--limit', '1')).toEqual([second]);
    expect((await listed('--app', 'web'))[0]).toBe(first);
    expect((await listed('--state', 'failed'))[0]).toBe(second);
    expect(await listed('--state', 'queued')).toEqual([]);
  });

  it('goes through as many pages as it takes', async () => {
    const name = stage.play(greet);
    const headers = { Authorization: `Bearer ${service.token}` };
    const url = `${service.base}${service.path(`other/${name}?async=true`)}`;
    const taken = await Promise.all(
      Array.from({ length: 230 }, async () => {
        const answer = await fetch(url, { method: 'POST', headers });
        return ((await answer.json()) as { run_id: string }).run_id;
      }),
    );
    const { stdout } = await command(['runs', 'list', '--all']);
    const listed = idsIn(stdout);
    expect(listed).toEqual(listed.toSorted().toReversed());
    expect(taken.filter(runId => !listed.includes(runId))).toEqual([]);
    expect(idsIn((await command(['runs', 'list', '--limit', '205'])).stdout)).toEqual(listed.slice(0, 205));
    // Whoever cancels a run waits a few seconds for its end: not while so many are carried out.
    await until(async () => (await command(['runs', 'list', '--state', 'queued'])).stdout === '');
  }, 60_000);

  it('is a table on a terminal', async () => {
    const delivered = await runOf('web', greet, '--webhook', inbox.url);
    await inbox.of(delivered);
    await command(['runs', 'show', delivered, '--wait']);
    const { stdout } = await command(['runs', 'list', '--limit', '1'], { terminal: true });
    const [header, row, ...rest] = stdout.split('\n');
    expect(rest).toEqual(['']);
    expect(header).toMatch(/^RUN {35}APP  STATE {6}CREATED {15}TIME +DELIVERY$/);
    expect(row!.replace(delivered, 'RUN')).toMatch(
      /^RUN {2}web {2}succeeded {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}[\d.]+ m?s +(?:delivered|pending)$/,
    );
  });
});

describe('show', () => {
  it('prints the JSON as it came', async () => {
    const runId = await runOf('web', greet);
    const { code, stdout } = await command(['runs', 'show', runId, '--wait']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ run_id: runId, state: 'succeeded', result: 'hello' });
    expect(await command(['runs', 'show', runId])).toEqual({ code: 0, stdout, stderr: '' });
    expect((await command(['runs', 'show', runId, '--json'], { terminal: true })).stdout).toBe(stdout);
  });

  it('is readable on a terminal', async () => {
    const runId = await runOf('web', refuse, '--webhook', `${inbox.url}?token=secret`);
    await inbox.of(runId);
    await command(['runs', 'show', runId, '--wait']);
    const { stdout } = await command(['runs', 'show', runId], { terminal: true });
    expect(stdout).toContain(
      `run       ${runId}\napp       web\nstate     failed\nstatus    418\ncreated   20`,
    );
    expect(stdout).toMatch(new RegExp(`^delivery  (?:delivered|pending), to ${inbox.url}$`, 'm'));
    expect(stdout).toContain('\n  "result": "no",\n');
  });

  it('exits 1 with --wait for a run that did not succeed, and 0 without', async () => {
    const runId = await runOf('web', refuse);
    expect(await command(['runs', 'show', runId, '--wait'])).toMatchObject({
      code: 1,
      stderr: 'error: the run failed with status 418\n',
    });
    expect(await command(['runs', 'show', runId])).toMatchObject({ code: 0, stderr: '' });
  });

  it('tells that there is no such run', async () => {
    const { code, stdout, stderr } = await command(['runs', 'show', UNKNOWN]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: The project has no such run \(run_not_found, run .{36}\)\n$/);
  });
});

describe('cancel', () => {
  it('ends runs that run and runs that wait, and prints the state of each', async () => {
    const [running, waiting] = [await runOf('narrow', never), await runOf('narrow', never)];
    expect(await command(['runs', 'cancel', running, waiting])).toEqual({
      code: 0,
      stdout: `${running} cancelled\n${waiting} cancelled\n`,
      stderr: '',
    });
    expect((await command(['runs', 'cancel', running, '--json'])).stdout).toBe(
      `{"run_id":"${running}","state":"cancelled"}\n`,
    );
    expect(await command(['runs', 'show', running, '--wait'])).toMatchObject({
      code: 1,
      stderr: 'error: the run was cancelled\n',
    });
  });

  it('goes on behind one that cannot be cancelled', async () => {
    const [done, open] = [await runOf('web', greet), await runOf('web', never)];
    await command(['runs', 'show', done, '--wait']);
    const { code, stdout, stderr } = await command(['runs', 'cancel', done, UNKNOWN, open]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: `${open} cancelled\n` });
    expect(stderr).toContain(`error: ${done}: `);
    expect(stderr).toContain('(run_ended, run ');
    expect(stderr).toContain(`error: ${UNKNOWN}: `);
  });
});

it.each([
  [['list', '--state', 'done'], '--state'],
  [['list', '--limit', '0'], '--limit'],
  [['list', '--limit', '5', '--all'], '--all'],
  [['show'], 'missing required argument'],
  [['cancel'], 'missing required argument'],
])('runs %j is wrong usage', async (argv, message) => {
  const { code, stdout, stderr } = await command(['runs', ...argv]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});
