/**
 * Apps over HTTP: those that are elsewhere, and those that run here with their processes and last lines.
 */
import { describe, expect, it } from 'vitest';
import { AppList } from '../../src/api/app-routes.ts';
import type { AppConfig, AppPlace } from '../../src/config/config.ts';
import type { HostedState } from '../../src/runtime/app-state.ts';
import { processOf } from '../support/service.ts';
import { openApp } from '../support/app.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/waiting.ts';
import { openRig, PROJECT } from './rig.ts';

const ELSEWHERE: AppPlace = { kind: 'url', url: new URL('http://10.0.0.1/'), concurrency: 8 };
const HERE: AppPlace = {
  kind: 'process',
  process: processOf({ program: { kind: 'command', command: ['true'] } }),
};

function app(projectId: string, name: string, place: AppPlace): [string, AppConfig] {
  return [name, { projectId, name, runtime: 'custom', place, forwardAuthorization: false }];
}

const apps = new Map([
  [PROJECT, new Map([app(PROJECT, 'far', ELSEWHERE), app(PROJECT, 'near', HERE), app(PROJECT, 'new', HERE)])],
  ['p-else', new Map([app('p-else', 'far', ELSEWHERE)])],
]);

const near: HostedState = {
  projectId: PROJECT,
  app: 'near',
  phase: 'ready',
  replicas: [
    { index: 0, phase: 'ready', pid: 7, restarts: 2, startedAt: 0, active: 3 },
    { index: 1, phase: 'pausing', restarts: 9, active: 0 },
  ],
  waiting: 1,
  lines: [{ at: 0, text: 'hello' }],
};

describe('the list of apps', () => {
  it('tells where each is, and how its processes stand', async () => {
    const rig = await openRig({}, { config: { projects: new Map(), apps }, hosted: async () => [near] });
    const { json } = await rig.get(`/v4/${PROJECT}/_apps`);
    const known = { project_id: PROJECT, runtime: 'custom' };
    const time = new Date(0).toISOString();
    expect(AppList.strict().parse(json)).toEqual(json);
    expect(json).toEqual({
      apps: [
        { ...known, app: 'far', place: 'url', state: 'elsewhere', replicas: [], log: [] },
        {
          ...known,
          app: 'near',
          place: 'process',
          state: 'ready',
          replicas: [
            { index: 0, state: 'ready', pid: 7, restarts: 2, started_at: time, active_calls: 3 },
            { index: 1, state: 'pausing', restarts: 9, active_calls: 0 },
          ],
          active_calls: 3,
          waiting_calls: 1,
          log: [{ at: time, text: 'hello' }],
        },
        {
          ...known,
          app: 'new',
          place: 'process',
          state: 'idle',
          replicas: [],
          active_calls: 0,
          waiting_calls: 0,
          log: [],
        },
      ],
    });
    const all = AppList.parse((await rig.get('/api/v1/apps')).json).apps;
    expect(all.map(each => `${each.project_id}/${each.app}`)).toContain('p-else/far');
    const one = AppList.parse((await rig.get('/api/v1/apps?project=p-else')).json).apps;
    expect(one).toHaveLength(1);
  });
});

describe('an app that runs here', () => {
  it('is seen to start, to print, and to start again after it has ended', async () => {
    const server = `
      const http = require('node:http');
      for (let i = 1; i <= 25; i += 1) console.log('line ' + i + ' ' + 'x'.repeat(300));
      http.createServer((req, res) => req.url === '/end' ? process.exit(3) : res.end('ok')).listen(process.env.PORT);`;
    const app = await openApp((_req, res) => res.end());
    const service = await startService({
      apps: {
        far: { runtime: 'custom', url: app.url },
        near: {
          runtime: 'custom',
          process: { program: { kind: 'command', command: [process.execPath, '-e', server] } },
        },
      },
    });
    const look = async () =>
      AppList.parse(await (await fetch(`${service.admin}/api/v1/apps`)).json()).apps[1]!;
    await until(async () => {
      const { state, log } = await look();
      return state === 'ready' && log.at(-1)?.text.startsWith('line 25 ') === true;
    });
    const { replicas, log } = await look();
    expect(log).toHaveLength(20);
    expect(replicas).toMatchObject([{ index: 0, state: 'ready', restarts: 0, active_calls: 0 }]);
    expect(log[0]!.text).toMatch(/^line 6 x+$/);
    expect(log.every(({ text }) => text.length <= 200)).toBe(true);
    const headers = { authorization: `Bearer ${service.token}` };
    await fetch(service.base + service.path('near/end'), { headers });
    await until(async () => (await look()).replicas[0]!.restarts > 0 && (await look()).state === 'ready');
    expect((await look()).replicas[0]!.pid).not.toBe(replicas[0]!.pid);
    await service.stop();
    await app.close();
  });
});
