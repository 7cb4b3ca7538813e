/** The keys of apps: where each is, what runs in those that run here, and what their processes get. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AppConfig, ProcessConfig } from '../../src/config/config.ts';
import { createFolder, type Folder } from './folder.ts';

const SECRET = 'x'.repeat(32);
/** The first app stands on line 5. */
const apps = (text: string) => `projects:\n  p:\n    jwt: { secret: ${SECRET} }\napps:\n${text}`;

/** A folder with files that an app can name. */
function createAppFolder(text: string): Folder {
  const folder = createFolder(apps(text));
  for (const file of ['main.ts', 'fn/main.py', 'other/file.txt']) folder.write(file, '');
  return folder;
}

function appOf(folder: Folder, env?: Record<string, string>): AppConfig {
  return folder.load(env).config.apps.get('p')!.get('a')!;
}

function processOf(folder: Folder, env?: Record<string, string>): ProcessConfig {
  const { place } = appOf(folder, env);
  if (place.kind !== 'process') throw new Error('the app does not run here');
  return place.process;
}

describe('an app', () => {
  it('is found by project and name', () => {
    const yaml = apps(`  p/hello: { runtime: cortex, url: http://10.0.0.5:9000/base/, concurrency: 3 }
  p/chat: { runtime: custom, url: https://chat.internal, forwardAuthorization: true }
`);
    const at = (url: string, concurrency: number) => ({ kind: 'url', url: new URL(url), concurrency });
    const found = (name: string, runtime: string, place: object, forwardAuthorization: boolean) =>
      [name, { projectId: 'p', name, runtime, place, forwardAuthorization }] as const;
    expect(createFolder(yaml).load().config.apps).toEqual(
      new Map([
        [
          'p',
          new Map([
            found('hello', 'cortex', at('http://10.0.0.5:9000/base/', 3), false),
            found('chat', 'custom', at('https://chat.internal', 8), true),
          ]),
        ],
      ]),
    );
  });

  const fine = '{ runtime: custom, url: http://x }';
  it.each(['p', 'p/', '/a', 'p/a/b', 'p/_a', '_p/a', '"p/a b"', `p/${'a'.repeat(64)}`])(
    'cannot have the key %s',
    key => {
      expect(createFolder(apps(`  ${key}: ${fine}`)).mistakes()).toEqual([
        expect.stringContaining("is not an app's key; expected project/name"),
      ]);
    },
  );

  it.each(['q', 'constructor'])('cannot belong to %s, which is no project', id => {
    expect(createFolder(apps(`  ${id}/a: ${fine}`)).mistakes()).toEqual([
      `afterword.yaml:5: apps.${id}/a: there is no project ${id}; expected one of \`projects\``,
    ]);
    expect(createFolder(`apps:\n  ${id}/a: ${fine}`).mistakes()).toHaveLength(1);
  });

  it.each([
    'ftp://x',
    'http:x',
    'http:/x',
    '//x',
    'x:9000',
    'http://u:hunter2@x',
    'http://u@x',
    'http://x/?a=1',
    'http://x/#a',
    'http://x/?',
    'http://x y',
    'http://x\\y',
    'http://',
    'http://x:99999',
    'http://x\u0001',
  ])('cannot be reached at %j', url => {
    const found = createFolder(apps(`  p/a: { runtime: custom, url: ${JSON.stringify(url)} }`)).mistakes();
    expect(found).toEqual([
      'afterword.yaml:5: apps.p/a.url: expected an http:// or https:// URL without credentials, query or fragment',
    ]);
  });

  const ONE = ': expected exactly one of url, entry, command';
  const WHOLE = (min: number, max: number) => `expected a whole number from ${min} to ${max}`;
  it.each([
    ['{ url: http://x }', ['.runtime: is needed: expected one of cortex, custom']],
    ['{ runtime: lambda, url: http://x }', ['.runtime: expected one of cortex, custom']],
    ['{ runtime: cortex }', [ONE]],
    ['{ runtime: cortex, entry: ./main.ts, url: http://x }', [ONE]],
    ['{ runtime: custom, command: [a], url: http://x }', [ONE]],
    ['{ runtime: cortex, entry: ./main.ts, url: x }', ['.url: expected an http://', ONE]],
    ['{ runtime: custom, urll: http://x }', ['.urll: is not a known key (did you mean url?)', ONE]],
    [
      '{ runtime: custom, url: http://x, forwardAuthorization: 1 }',
      ['.forwardAuthorization: expected true or false'],
    ],
    // Checked although they have no effect.
    ['{ runtime: custom, url: http://x, port: 0 }', [`.port: ${WHOLE(1, 65_535)}`]],
    ['{ runtime: custom, url: http://x, env: [a] }', ['.env: expected a map of names to text']],

    [
      '{ runtime: custom, entry: main.ts }',
      ['.entry: is for `runtime: cortex`; a custom app has a `command` or `url`'],
    ],
    [
      '{ runtime: cortex, command: [a] }',
      ['.command: is for `runtime: custom`; a cortex app has an `entry` or `url`'],
    ],
    ['{ runtime: cortex, entry: 5 }', ["entry: expected the path of the functions' file"]],
    ['{ runtime: cortex, entry: "" }', ["entry: expected the path of the functions' file"]],
    ['{ runtime: cortex, entry: none.ts }', ['.entry: there is no such file']],
    ['{ runtime: cortex, entry: none/main.py }', ['.entry: there is no such file']],
    ['{ runtime: cortex, entry: fn }', ['.entry: expected a file that ends in .ts, .mts, .js,']],
    ['{ runtime: cortex, entry: other/file.txt }', ['.entry: expected a file that ends in .ts,']],
    ['{ runtime: custom, command: python3 server.py }', ['.command: expected a list of a command']],
    ['{ runtime: custom, command: [] }', ['.command: expected a list of a command and its arguments']],
    ['{ runtime: custom, command: [a, 80] }', ['.command[1]: expected a list of a command and its']],
    ['{ runtime: custom, command: [a], port: 65536 }', [`.port: ${WHOLE(1, 65_535)}`]],
    [
      '{ runtime: custom, command: [a], port: 65534, replicas: 3 }',
      ['.port: expected one that leaves a port for each of the replicas'],
    ],
    ['{ runtime: custom, command: [a], health: health }', ['.health: expected a path that starts with /']],
    ['{ runtime: custom, command: [a], health: "/a b" }', ['.health: expected a path that starts with /']],
    ['{ runtime: cortex, entry: fn/main.py, python: "" }', ['.python: expected a command, such as']],
    ['{ runtime: cortex, entry: main.ts, replicas: 0 }', [`.replicas: ${WHOLE(1, 1_000)}`]],
    ['{ runtime: cortex, entry: main.ts, concurrency: 0 }', [`.concurrency: ${WHOLE(1, 100_000)}`]],
    ['{ runtime: custom, url: http://x, concurrency: 0 }', [`.concurrency: ${WHOLE(1, 100_000)}`]],
    ['{ runtime: cortex, entry: main.ts, queue: -1 }', [`.queue: ${WHOLE(0, 100_000)}`]],
    ['{ runtime: cortex, entry: main.ts, queue: 1.5 }', [`.queue: ${WHOLE(0, 100_000)}`]],
    ['{ runtime: cortex, entry: main.ts, start: later }', ['.start: expected one of boot, call']],
    ['{ runtime: cortex, entry: main.ts, cwd: none }', ['.cwd: there is no such folder']],
    ['{ runtime: cortex, entry: main.ts, cwd: main.ts }', ['.cwd: there is no such folder']],
    ['{ runtime: cortex, entry: main.ts, env: { A: 1 } }', ['.env.A: expected text (in quotes where']],
    ['{ runtime: cortex, entry: main.ts, env: { A: } }', ['.env.A: expected text (in quotes where']],
    ['{ runtime: cortex, entry: main.ts, env: { A: "\\0" } }', ['.env.A: expected text without NUL']],
    ['{ runtime: cortex, entry: main.ts, env: { A=B: c } }', ['.env.A=B: is no name for a variable']],
    ['{ runtime: cortex, entry: main.ts, env: { "": c } }', ['.env: a key must be text']],
    [
      '{ runtime: cortex, entry: main.ts, replica: 2 }',
      ['.replica: is not a known key (did you mean replicas'],
    ],
  ])('cannot be %s', (value, mistakes) => {
    const found = createAppFolder(`  p/a: ${value}`).mistakes();
    for (const text of mistakes) {
      expect(found).toContainEqual(expect.stringContaining(text));
    }
    expect(found.every(line => line.startsWith('afterword.yaml:5: apps.p/a'))).toBe(true);
    expect(found).toHaveLength(mistakes.length);
  });

  it('has each of its mistakes on its line', () => {
    const folder = createAppFolder(`  p/a:
    runtime: custom
    command:
      - server
      - 8080
    port: 65535
    replicas: 2
    cwd: none
    env:
      GOOD: fine
      BAD: 1
  p/b:
    runtime: cortex
    entry: none.py
    queue: many
`);
    const lines = folder.mistakes().map(line => line.split(/: (?=expected|there)/)[0]);
    expect(lines).toEqual([
      'afterword.yaml:9: apps.p/a.command[1]',
      'afterword.yaml:10: apps.p/a.port',
      'afterword.yaml:12: apps.p/a.cwd',
      'afterword.yaml:15: apps.p/a.env.BAD',
      'afterword.yaml:18: apps.p/b.entry',
      'afterword.yaml:19: apps.p/b.queue',
    ]);
  });
});

describe('an app that runs here', () => {
  const DEFAULTS = { env: {}, replicas: 1, queue: 100, start: 'boot' };

  it.each(['main.ts', './main.ts', 'fn/../main.ts'])('has defaults with the entry %s', entry => {
    const folder = createAppFolder(`  p/a: { runtime: cortex, entry: ${entry} }`);
    const program = { kind: 'node', entry: join(folder.path, 'main.ts') };
    expect(processOf(folder)).toEqual({ ...DEFAULTS, program, cwd: folder.path, concurrency: 8 });
    expect(folder.load().warnings).toEqual([]);
  });

  it('has defaults with an entry in Python', () => {
    const folder = createAppFolder('  p/a: { runtime: cortex, entry: fn/main.py }');
    const cwd = join(folder.path, 'fn');
    const program = { kind: 'python', entry: join(cwd, 'main.py'), python: 'python3' };
    expect(processOf(folder)).toEqual({ ...DEFAULTS, program, cwd, concurrency: 8 });
  });

  it.each(['main.ts', 'main.mts', 'main.js', 'main.mjs', 'main.cjs'])('may be %s', name => {
    const folder = createFolder(apps(`  p/a: { runtime: cortex, entry: ${name} }`));
    folder.write(name, '');
    expect(processOf(folder).program.kind).toBe('node');
  });

  it('has defaults with a command', () => {
    const folder = createAppFolder('  p/a: { runtime: custom, command: [server, --fast] }');
    const program = { kind: 'command', command: ['server', '--fast'] };
    expect(processOf(folder)).toEqual({ ...DEFAULTS, program, cwd: folder.path, concurrency: 256 });
  });

  it('takes every key of functions, also as text of a variable', () => {
    const folder = createAppFolder(`  p/a:
    runtime: cortex
    entry: \${FOLDER}/main.py
    python: .venv/bin/python
    replicas: \${COUNT}
    concurrency: \${COUNT}
    queue: 0
    start: call
    cwd: ./other
    env: { A: "\${COUNT}", B: "", lower: "$\${C}" }
    forwardAuthorization: true
`);
    const env = { FOLDER: 'fn', COUNT: '3' };
    expect(processOf(folder, env)).toEqual({
      program: { kind: 'python', entry: join(folder.path, 'fn/main.py'), python: '.venv/bin/python' },
      cwd: join(folder.path, 'other'),
      env: { A: '3', B: '', lower: '${C}' },
      replicas: 3,
      concurrency: 3,
      queue: 0,
      start: 'call',
    });
    expect(appOf(folder, env).forwardAuthorization).toBe(true);
  });

  it('takes every key of a command', () => {
    const folder = createAppFolder(`  p/a:
    runtime: custom
    command: [python3, server.py]
    port: 9001
    health: /health?deep
    replicas: 2
    concurrency: 1000
    cwd: /
`);
    const program = {
      kind: 'command',
      command: ['python3', 'server.py'],
      port: 9001,
      health: '/health?deep',
    };
    expect(processOf(folder)).toEqual({ ...DEFAULTS, program, cwd: '/', replicas: 2, concurrency: 1000 });
  });

  it('has paths from the folder of the file, or from the working directory where a variable gives them', () => {
    const folder = createFolder();
    folder.write('etc/a.yaml', apps('  p/a: { runtime: cortex, entry: main.ts, cwd: .. }'));
    folder.write('etc/main.ts', '');
    folder.write('main.ts', '');
    const load = (env = {}) => {
      const { place } = folder.load(env, 'etc/a.yaml').config.apps.get('p')!.get('a')!;
      return place.kind === 'process' && [place.process.program, place.process.cwd];
    };
    expect(load()).toEqual([{ kind: 'node', entry: join(folder.path, 'etc/main.ts') }, folder.path]);
    const AFTERWORD_APPS = 'p/a: { runtime: cortex, entry: main.ts }';
    expect(load({ AFTERWORD_APPS })).toEqual([
      { kind: 'node', entry: join(folder.path, 'main.ts') },
      folder.path,
    ]);
  });
});

describe('a key without effect is a warning', () => {
  const noEffect = (place: string) => `has no effect on an app with \`${place}\``;
  it.each([
    ['url: http://x', 'port: 80', noEffect('url')],
    ['url: http://x', 'health: /', noEffect('url')],
    ['url: http://x', 'python: python3', noEffect('url')],
    ['url: http://x', 'replicas: 2', noEffect('url')],
    ['url: http://x', 'queue: 2', noEffect('url')],
    ['url: http://x', 'start: call', noEffect('url')],
    ['url: http://x', 'cwd: .', noEffect('url')],
    ['url: http://x', 'env: { A: b }', noEffect('url')],
    ['entry: main.ts', 'port: 80', noEffect('entry')],
    ['entry: main.ts', 'health: /', noEffect('entry')],
    ['entry: main.ts', 'python: python3', 'has no effect: the entry is not Python'],
    ['command: [a]', 'python: python3', noEffect('command')],
  ])('%s, %s', (place, key, warning) => {
    const runtime = place.startsWith('entry') ? 'cortex' : 'custom';
    const folder = createAppFolder(`  p/a:\n    runtime: ${runtime}\n    ${place}\n    ${key}\n`);
    expect(folder.load().warnings).toEqual([`afterword.yaml:8: apps.p/a.${key.split(':')[0]}: ${warning}`]);
  });

  it.each([
    '{ runtime: cortex, entry: main.ts, replicas: 2, concurrency: 2, queue: 2, start: call, cwd: ., env: {} }',
    '{ runtime: cortex, entry: fn/main.py, python: python3 }',
    '{ runtime: custom, command: [a], port: 80, health: /, replicas: 2, concurrency: 2, queue: 2, cwd: . }',
    '{ runtime: custom, url: http://x, concurrency: 2 }',
  ])('and one with effect is none: %s', value => {
    expect(createAppFolder(`  p/a: ${value}`).load().warnings).toEqual([]);
  });
});

describe('of the environment, apps get', () => {
  const passed = (yaml: string, env: Record<string, string>) =>
    createFolder(yaml).load(env).config.appEnvironment;

  it('what is none of the service’s business', () => {
    expect(passed('', { A: '1', EMPTY: '', lower: 'x' })).toEqual({ A: '1', EMPTY: '', lower: 'x' });
  });

  it('nothing of the service', () => {
    const env = {
      AFTERWORD_LISTEN: ':1',
      AFTERWORD_TEST_X: '1',
      AFTERWORD_ADMIN_TOKEN: 't',
      AFTERWORDS: 'mine',
    };
    expect(passed('', env)).toEqual({ AFTERWORDS: 'mine' });
  });

  it('nothing that the configuration refers to, wherever it does', () => {
    const yaml = `# \${COMMENTED}
adminToken: \${TOKEN}
projects: { p: { jwt: { secret: "a\${SECRET}b" } } }
apps: { p/a: { runtime: custom, command: [a], env: { MINE: \${PASSWORD} } } }
`;
    const env = { COMMENTED: '1', TOKEN: 't', SECRET: SECRET, PASSWORD: 'p', OTHER: 'o' };
    const folder = createFolder(yaml);
    expect(folder.load(env).config.appEnvironment).toEqual({ OTHER: 'o' });
    expect(processOf(folder, env).env).toEqual({ MINE: 'p' });
    const inVariable = { ...env, AFTERWORD_PROJECTS: 'p: { jwt: { secret: ${OTHER} } }', OTHER: SECRET };
    expect(folder.load(inVariable).config.appEnvironment).toEqual({});
  });

  it('what is never a secret, even so', () => {
    const env = { PATH: '/bin', HOME: '/home', LANG: 'C', OTHER: '/data' };
    expect(passed('data: ${HOME}/${OTHER}/${PATH}/${LANG}', env)).toEqual({
      PATH: '/bin',
      HOME: '/home',
      LANG: 'C',
    });
  });
});
