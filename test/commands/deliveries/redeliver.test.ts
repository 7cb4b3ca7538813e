/**
 * `afterword deliveries redeliver` against a real service: by run ids, and by filters.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Job } from '../../../src/api/delivery-contract.ts';
import { openInbox } from '../../support/inbox.ts';
import { until } from '../../support/waiting.ts';
import { type Ground, idsIn, openGround, UNKNOWN } from './delivering.ts';

let ground: Ground;

beforeAll(async () => {
  ground = await openGround();
});
afterAll(() => ground.close());
beforeEach(() => ground.answerWith(200));

/** So many that have failed, the oldest first. */
async function failed(count: number, app = 'web'): Promise<string[]> {
  const { deliver, settled } = ground;
  ground.answerWith(500);
  const runIds = await Promise.all(Array.from({ length: count }, () => deliver({ app })));
  await Promise.all(runIds.map(runId => settled(runId, 'failed')));
  ground.answerWith(200);
  return runIds.sort();
}

describe('by run ids', () => {
  it('begins a new round each, and goes on behind one that is refused', async () => {
    const { command, settled } = ground;
    const [first, second] = await failed(2);
    const { code, stdout, stderr } = await command(['redeliver', first!, UNKNOWN, second!]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      new RegExp(`^${first} (?:pending|delivered), round 2\n${second} \\w+, round 2\n$`),
    );
    expect(stderr).toMatch(new RegExp(`^error: ${UNKNOWN}: .*\\(delivery_not_found, `));
    await settled(first!, 'delivered', 2);
    await settled(second!, 'delivered', 2);
  });

  it('waits for the end of all rounds where it is asked to', async () => {
    const { command } = ground;
    const [first, second] = await failed(2);
    expect(await command(['redeliver', first!, second!, '--wait'])).toEqual({
      code: 0,
      stdout: `${first} delivered, round 2\n${second} delivered, round 2\n`,
      stderr: '',
    });
    ground.answerWith(500);
    expect(await command(['redeliver', first!, UNKNOWN, '--wait', '--json'])).toMatchObject({
      code: 1,
      stdout: `{"run_id":"${first}","state":"failed","reason":"rejected","round":3}\n`,
    });
  });

  it('ends the waiting with Ctrl-C, and not the delivery', async () => {
    const { begin, settled } = ground;
    const [runId] = await failed(1);
    ground.answerWith(404);
    const waiting = begin(['redeliver', runId!, '--wait'], { terminal: true });
    await waiting.stderr.match(/pending/);
    waiting.stop();
    expect(await waiting.exit).toBe(130);
    expect(waiting.stderr.text).toMatch(
      new RegExp(`the delivery goes on; look again with: afterword deliveries show ${runId}\n$`),
    );
    ground.answerWith(200);
    await settled(runId!, 'delivered', 2);
  });

  it('goes elsewhere, once for each idempotency key', async () => {
    const { command, settled } = ground;
    const elsewhere = await openInbox();
    const [runId] = await failed(1);
    const redeliver = [
      'redeliver',
      runId!,
      '--to',
      `${elsewhere.url}?a=b`,
      '--idempotency-key',
      `fix-${runId}`,
    ];
    expect(await command([...redeliver, '--wait'])).toMatchObject({ code: 0 });
    expect(await command([...redeliver, '--wait'])).toMatchObject({ code: 0 });
    expect(elsewhere.received.map(({ path }) => path)).toEqual(['/hook?a=b']);
    await elsewhere.close();
    const told = await settled(runId!, 'delivered', 2);
    expect(told).toMatchObject({ own_target: ground.inbox.url });
    const { stdout } = await command(['show', runId!], { terminal: true });
    expect(stdout).toContain(`otherwise ${ground.inbox.url}\n`);
    expect(stdout).toMatch(/^2\.1 .* manual .*\/hook\?a=b$/m);
  });
});

describe('by a filter', () => {
  // A job ends before what it redelivers does, and a receiver that fails one test must not fail the last one's.
  beforeEach(async () => {
    const { command } = ground;
    await command(['redeliver', '--state', 'failed', '--yes']);
    await until(async () => {
      const { code, stdout } = await command(['list', '--state', 'pending']);
      return code === 0 && stdout === '';
    });
  });

  it('counts, and does nothing more, in a dry run', async () => {
    const { command } = ground;
    const runIds = await failed(2, 'other');
    const count = ['redeliver', '--state', 'failed', '--app', 'other', '--dry-run'];
    expect(await command(count)).toEqual({ code: 0, stdout: '2 deliveries found\n', stderr: '' });
    expect(await command([...count, '--json'])).toMatchObject({ stdout: '{"matching":2,"exact":true}\n' });
    const { stdout } = await command(['list', '--state', 'failed', '--app', 'other']);
    expect(idsIn(stdout)).toEqual(runIds.toReversed());
    expect(await command(['redeliver', ...count.slice(1, -1), '--yes'])).toMatchObject({
      code: 0,
      stdout: '2 redelivered\n',
    });
  });

  it('redelivers in the background, and waits for that', async () => {
    const { command, settled } = ground;
    const runIds = await failed(3);
    const { code, stdout, stderr } = await command(['redeliver', '--state', 'failed', '--yes', '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(Job.strict().parse(JSON.parse(stdout))).toMatchObject({ state: 'done', seen: 3, redelivered: 3 });
    await Promise.all(runIds.map(runId => settled(runId, 'delivered', 2)));
    expect(await command(['redeliver', '--state', 'failed', '--yes'])).toMatchObject({
      code: 0,
      stdout: '0 deliveries found\n',
    });
  });

  it('does not wait where it is told so, and waits later for the job', async () => {
    const { command } = ground;
    await failed(1);
    const key = ['--idempotency-key', 'once'];
    const begin = ['redeliver', '--state', 'failed', '--yes', '--no-wait', ...key];
    const { stdout: jobId } = await command(begin);
    expect(jobId).toMatch(/^[0-9a-f-]{36}\n$/);
    expect(await command(['redeliver', '--job', jobId.trim()])).toMatchObject({
      code: 0,
      stdout: '1 redelivered\n',
    });
  });

  it.each([
    ['y\n', true],
    ['Yes\n', true],
    ['n\n', false],
    ['\n', false],
    ['', false],
  ])('asks on a terminal; %j means %j', async (answer, yes) => {
    const { command } = ground;
    const [runId] = await failed(1);
    const asked = ['redeliver', '--state', 'failed', '--since', '1h'];
    const { code, stdout, stderr } = await command(asked, { terminal: true, stdin: answer });
    expect(stderr).toContain('Redeliver 1 delivery? [y/N] ');
    expect({ code, stdout }).toEqual(yes ? { code: 0, stdout: '1 redelivered\n' } : { code: 1, stdout: '' });
    expect(stderr.endsWith('nothing was redelivered\n')).toBe(!yes);
    await command(['redeliver', runId!, '--wait']);
  });
});

it.each([
  [[], 'run ids are needed'],
  [[UNKNOWN, '--state', 'failed'], 'only one of them'],
  [[UNKNOWN, '--job', UNKNOWN], 'only one of them'],
  [['--state', 'failed'], '--yes is needed where nobody can be asked'],
  [['--state', 'failed', '--to', 'http://a.example/', '--yes'], '--to is for run ids'],
  [[UNKNOWN, '--dry-run'], '--dry-run and --yes are for a filter'],
  [[UNKNOWN, UNKNOWN, '--idempotency-key', 'k'], '--idempotency-key is for a single run id'],
  [[UNKNOWN, '--idempotency-key', 'ä'], 'visible ASCII'],
  [[UNKNOWN, '--to', 'a.example'], 'It is not an absolute http or https URL.'],
])('deliveries redeliver %j is wrong usage', async (argv, message) => {
  const { code, stdout, stderr } = await ground.command(['redeliver', ...argv]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});
