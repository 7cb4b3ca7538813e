/**
 * `afterword deliveries list`, `show` and `cancel` against a real service.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Delivery, DeliveryDetail } from '../../src/api/delivery-contract.ts';
import { until } from '../support/waiting.ts';
import { ANSWER, type Ground, idsIn, objectsIn, openGround, UNKNOWN } from './deliveries/delivering.ts';

let ground: Ground;

beforeAll(async () => {
  ground = await openGround();
});
afterAll(() => ground.close());
beforeEach(() => ground.answerWith(200));

describe('list', () => {
  it('prints lines of JSON as the API tells it, filtered as asked', async () => {
    const { command, deliver, settled } = ground;
    const delivered = await deliver();
    await settled(delivered, 'delivered');
    ground.answerWith(503);
    const failed = await deliver({ app: 'other' });
    await settled(failed, 'failed');
    const listed = async (...argv: string[]) => (await command(['list', ...argv])).stdout;
    for (const each of objectsIn(await listed())) expect(Delivery.strict().parse(each)).toEqual(each);
    const { host } = new URL(ground.inbox.url);
    const among = new Set([delivered, failed]);
    const found = async (...argv: string[]) => idsIn(await listed(...argv)).filter(runId => among.has(runId));
    expect(await found()).toEqual([failed, delivered]);
    expect(await found('--limit', '1')).toEqual([failed]);
    expect(await found('--state', 'delivered')).toEqual([delivered]);
    expect(await found('--reason', 'rejected')).toEqual([failed]);
    expect(await found('--app', 'other')).toEqual([failed]);
    expect(await found('--status', '5xx', '--host', host)).toEqual([failed]);
    expect(await found('--status', '200')).toEqual([delivered]);
    expect(await found('--since', '1h')).toEqual([failed, delivered]);
    expect(await found('--until', '1h')).toEqual([]);
    expect(await found('--until', '2999-01-01T00:00:00Z', '--host', 'nobody.example')).toEqual([]);
  });

  it('goes through as many pages as it takes', async () => {
    const { command, deliver } = ground;
    const made = await Promise.all(Array.from({ length: 210 }, () => deliver()));
    const listed = idsIn((await command(['list', '--all'])).stdout);
    expect(listed).toEqual(listed.toSorted().toReversed());
    expect(made.filter(runId => !listed.includes(runId))).toEqual([]);
    expect(idsIn((await command(['list', '--limit', '205'])).stdout)).toEqual(listed.slice(0, 205));
  }, 60_000);

  it('is a table on a terminal', async () => {
    const { command, deliver, settled } = ground;
    ground.answerWith(400);
    const runId = await deliver();
    await settled(runId);
    const { stdout } = await command(['list', '--limit', '1'], { terminal: true });
    const [header, row, ...rest] = stdout.split('\n');
    expect(rest).toEqual(['']);
    expect(header).toMatch(/^AGE +RUN {35}APP {2}STATE {13}ANSWER {2}ATTEMPTS {2}TARGET$/);
    expect(row!.replace(runId, 'RUN').replace(ground.inbox.url, 'URL')).toMatch(
      /^[\d.]+ m?s {2}RUN {2}web {2}failed: rejected {2}400 {5}1 {9}URL$/,
    );
  });

  it('says on a terminal that nothing was found', async () => {
    const nothing = ['list', '--host', 'nobody.example'];
    const none = { code: 0, stdout: '' };
    expect(await ground.command(nothing, { terminal: true })).toEqual({
      ...none,
      stderr: 'none was found\n',
    });
    expect(await ground.command(nothing)).toEqual({ ...none, stderr: '' });
  });
});

describe('show', () => {
  it('prints the JSON as it came', async () => {
    const { command, deliver, settled } = ground;
    const runId = await deliver();
    const told = await settled(runId);
    expect(DeliveryDetail.strict().parse(told)).toEqual(told);
    const plain = await command(['show', runId.toUpperCase(), '--json'], { terminal: true });
    expect(JSON.parse(plain.stdout)).toEqual(told);
    const { stdout } = await command(['show', runId, '--body']);
    const { body } = await ground.inbox.of(runId);
    expect(stdout.endsWith(`,"body":${body.toString()}}}\n`)).toBe(true);
    expect(stdout).toContain(ANSWER);
  });

  it('is readable on a terminal, with what is sent', async () => {
    const { command, deliver, settled } = ground;
    const runId = await deliver();
    await settled(runId);
    const { stdout } = await command(['show', runId, '--body'], { terminal: true });
    expect(stdout).toContain(
      `run       ${runId}\napp       web\ntarget    ${ground.inbox.url}\nstate     delivered\n` +
        'call      answered with 200\ncreated   20',
    );
    expect(stdout).toContain('\nanswer    thanks\n');
    expect(stdout).toMatch(/^ATTEMPT {2}TRIGGER {4}STARTED {15}ANSWER {2}PHASES/m);
    expect(stdout).toMatch(
      /^1\.1 {6}automatic {2}\S+ \S+Z {2}200 {5}queue [\d.]+ m?s, (?:connect [\d.]+ m?s, )?first byte [\d.]+ m?s, total [\d.]+ m?s$/m,
    );
    expect(stdout).toContain(`\nPOST ${ground.inbox.url}\nContent-Type: application/json\n`);
    expect(stdout).toContain('\n    "id": 12345678901234567890,\n');
  });

  it('explains errors once, and tells when the next attempt is', async () => {
    const { command, deliver } = ground;
    const runId = await deliver({ target: 'http://127.0.0.1:1/' });
    const shown = async () => (await command(['show', runId], { terminal: true })).stdout;
    await until(async () => /^next {6}attempt (?:in [\d.]+ m?s|is due)$[^]*^1\.1 /m.test(await shown()));
    await until(async () => /^1\.2 /m.test(await shown()));
    expect((await shown()).match(/^connection_refused: Nobody listens .* redeliver\.$/gm)).toHaveLength(1);
    await command(['cancel', runId]);
  });

  it('tells that there is no such delivery', async () => {
    for (const terminal of [false, true]) {
      const { code, stdout, stderr } = await ground.command(['show', UNKNOWN], { terminal });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^error: .* \(delivery_not_found, run .{36}\)\n$/);
    }
  });
});

describe('cancel', () => {
  it('ends what is pending, and goes on behind one that cannot be cancelled', async () => {
    const { command, deliver, settled } = ground;
    const done = await deliver();
    await settled(done);
    ground.answerWith(404);
    const [first, second] = [await deliver(), await deliver()];
    const { code, stdout, stderr } = await command(['cancel', done, UNKNOWN, first]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: `${first} cancelled\n` });
    expect(stderr).toMatch(new RegExp(`^error: ${done}: .*\\(delivery_settled, `));
    expect(stderr).toContain(`\nerror: ${UNKNOWN}: `);
    expect(await command(['cancel', second, '--json'])).toEqual({
      code: 0,
      stdout: `{"run_id":"${second}","state":"cancelled"}\n`,
      stderr: '',
    });
  });
});

it.each([
  [['list', '--state', 'done'], '--state'],
  [['list', '--reason', 'none'], '--reason'],
  [['list', '--status', '6x'], 'It must be a status such as 503, or a class such as 5xx.'],
  [['list', '--since', 'yesterday'], 'It must be a time in ISO 8601 with its zone'],
  [['list', '--host', 'http://a.example/'], 'It must be a host as in a URL'],
  [['list', '--app', '_runs'], 'It must be the name of an app.'],
  [['list', '--limit', '5', '--all'], '--all'],
  [['show'], 'missing required argument'],
  [['show', 'stream'], 'It must be the id of a run'],
  [['cancel', UNKNOWN, 'stream'], 'It must be the id of a run'],
])('deliveries %j is wrong usage', async (argv, message) => {
  const { code, stdout, stderr } = await ground.command(argv);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});
