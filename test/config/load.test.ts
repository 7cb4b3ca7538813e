/** Where values come from, which of them wins, and how mistakes are reported. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { variables } from '../../src/config/environment.ts';
import { createFolder } from './folder.ts';

const SECRET = 'x'.repeat(32);

describe('the file', () => {
  it('of the contract loads', () => {
    const folder = createFolder(`listen: 127.0.0.1:8080            # calls
admin: 127.0.0.1:8081             # management API
adminToken: \${AFTERWORD_ADMIN_TOKEN}   # needed unless admin is loopback
data: ./data                      # embedded store (SQLite)
role: all
workers: 1
encryptionKey: \${AFTERWORD_ENCRYPTION_KEY}
projects:
  p-demo:
    jwt: { secret: \${DEMO_JWT_SECRET} }      # or publicKey, or jwksUrl
    standardWebhooks: false
    requireSecret: false
    maxPending: 100000
apps:
  p-demo/hello: { runtime: cortex, entry: ./apps/hello/main.ts, replicas: 1, concurrency: 8 }
  p-demo/score: { runtime: cortex, entry: ./apps/score/main.py }
  p-demo/tts:   { runtime: cortex, url: http://10.0.0.5:9000 }        # functions served elsewhere
  p-demo/chat:  { runtime: custom, url: http://127.0.0.1:9000 }
  p-demo/web:   { runtime: custom, command: [python3, server.py], port: 9001, health: /health }
webhooks:
  attemptTimeout: 15s
  maxBody: 16MiB
  commitWait: 100ms
  concurrency: 256
  perTarget: 32
  allowTargets: []
  retention: 30d
appTimeout: 15m
async: { timeout: 15m, maxStarts: 2, maxRequest: 16MiB, retention: 1d }
`);
    for (const file of ['apps/hello/main.ts', 'apps/score/main.py']) folder.write(file, '');
    const { config, warnings } = folder.load({
      AFTERWORD_ADMIN_TOKEN: 'token',
      AFTERWORD_ENCRYPTION_KEY: 'ab'.repeat(32),
      DEMO_JWT_SECRET: SECRET,
    });
    const { webhooks, async: runs, appTimeout } = createFolder().load().config;
    expect(config).toMatchObject({ adminToken: 'token', webhooks, async: runs, appTimeout });
    expect(warnings).toEqual([]);
    expect([...config.apps.get('p-demo')!.keys()]).toEqual(['hello', 'score', 'tts', 'chat', 'web']);
  });

  it('is the one named, before AFTERWORD_CONFIG, before ./afterword.yaml', () => {
    const folder = createFolder('appTimeout: 1s');
    folder.write('two.yaml', 'appTimeout: 2s');
    const three = folder.write('etc/three.yaml', 'appTimeout: 3s');
    expect(folder.load().config.appTimeout).toBe(1000);
    expect(folder.load({ AFTERWORD_CONFIG: 'two.yaml' }).config.appTimeout).toBe(2000);
    const named = folder.load({ AFTERWORD_CONFIG: 'two.yaml' }, three);
    expect(named.config.appTimeout).toBe(3000);
    expect(named.file).toBe(three);
  });

  it('need not exist where none is named', () => {
    expect(createFolder().load()).not.toHaveProperty('file');
  });

  it.each([
    ['nope.yaml', 'there is no such file'],
    ['.', 'it is a directory'],
  ])('must be readable where it is named: %s', (name, reason) => {
    const folder = createFolder('listen: nonsense');
    expect(folder.mistakes({}, name)).toEqual([
      `${name}: the configuration file ${name} cannot be read: ${reason}`,
    ]);
    expect(folder.mistakes({ AFTERWORD_CONFIG: name })).toEqual([
      `AFTERWORD_CONFIG: the configuration file ${name} cannot be read: ${reason}`,
    ]);
  });

  it('is named in mistakes as the operator named it', () => {
    const folder = createFolder();
    const path = folder.write('etc/a.yaml', 'x: 1');
    expect(folder.mistakes({}, 'etc/a.yaml')).toEqual(['etc/a.yaml:1: x: is not a known key']);
    expect(folder.mistakes({}, path)).toEqual([`${path}:1: x: is not a known key`]);
  });

  it('that is not YAML is told alone with the variables that are wrong by name', () => {
    const folder = createFolder('listen: 1\nadmin: "x\n');
    expect(folder.mistakes({ AFTERWORD_NONSENSE: '1', AFTERWORD_LISTEN: 'x' })).toEqual([
      expect.stringMatching(/^afterword\.yaml:\d: a closing quote or bracket/),
      'AFTERWORD_NONSENSE: is not a variable of Afterword',
    ]);
  });
});

describe('data', () => {
  it('starts from the folder of the file', () => {
    const folder = createFolder();
    folder.write('etc/a.yaml', 'data: ../store');
    folder.write('etc/b.yaml', '');
    expect(folder.load({}, 'etc/a.yaml').config.data).toBe(join(folder.path, 'store'));
    expect(folder.load({}, 'etc/b.yaml').config.data).toBe(join(folder.path, 'etc/data'));
  });
  it('starts from the working directory where a variable gives it', () => {
    const folder = createFolder();
    folder.write('etc/a.yaml', 'data: ../store');
    expect(folder.load({ AFTERWORD_DATA: 'here' }, 'etc/a.yaml').config.data).toBe(join(folder.path, 'here'));
  });
});

describe('references in the file', () => {
  it('stand for any text, in any style of YAML', () => {
    const yaml = `# \${IN_A_COMMENT}
listen: \${HOST}:\${PORT}
admin: "\${HOST}:81"
adminToken: '\${TOKEN}'
projects:
  p:
    jwt: { secret: \${SECRET}, issuer: \${TOKEN}, audience: "$\${LITERAL}" }
webhooks: { attemptTimeout: \${T}, concurrency: \${N}, allowTargets: [ \${NET}, "10.\${N}.0.0/16" ] }
data: |-
  /var/\${HOST}
`;
    const { config } = createFolder(yaml).load({
      HOST: '127.0.0.1',
      PORT: '80',
      TOKEN: '}:#"',
      SECRET: `${SECRET}: [a, {`,
      T: '2s',
      N: '9',
      NET: '10.0.0.0/8',
    });
    expect(config).toMatchObject({
      listen: { host: '127.0.0.1', port: 80 },
      admin: { host: '127.0.0.1', port: 81 },
      adminToken: '}:#"',
      data: '/var/127.0.0.1',
      webhooks: { attemptTimeout: 2000, concurrency: 9, allowTargets: ['10.0.0.0/8', '10.9.0.0/16'] },
    });
    expect(config.projects.get('p')?.jwt).toEqual({
      secret: `${SECRET}: [a, {`,
      issuer: '}:#"',
      audience: '${LITERAL}',
    });
  });

  it('are never read as YAML', () => {
    const folder = createFolder('projects: { p: { jwt: { secret: ${S} } } }\napps: ${APPS}\n');
    const env = { S: `a, publicKey: b}\n#${SECRET}`, APPS: '{}' };
    expect(folder.mistakes(env)).toEqual(['afterword.yaml:2: apps: expected a map of keys and values']);
    const { config } = folder.load({ ...env, AFTERWORD_APPS: '{}' });
    expect(config.projects.get('p')?.jwt).toEqual({ secret: env.S });
  });

  it('are not replaced in keys, and keys are named as they were written', () => {
    expect(createFolder('${KEY}: 1').mistakes({ KEY: 'listen' })).toEqual([
      'afterword.yaml:1: ${KEY}: is not a known key',
    ]);
  });

  it('must be set', () => {
    const folder = createFolder(
      'listen: ${HOST}:${PORT}\nwebhooks:\n  allowTargets:\n    - ${ONE}\n    - ${TWO}\n',
    );
    expect(folder.mistakes({ PORT: '1', ONE: 'a' })).toEqual([
      'afterword.yaml:1: listen: the variable HOST is not set',
      'afterword.yaml:5: webhooks.allowTargets[1]: the variable TWO is not set',
    ]);
  });

  it('need not be set where the environment overrides the value', () => {
    const folder = createFolder('adminToken: ${AFTERWORD_ADMIN_TOKEN}');
    expect(folder.mistakes()).toEqual([
      'afterword.yaml:1: adminToken: the variable AFTERWORD_ADMIN_TOKEN is not set',
    ]);
    folder.write('token', 'tok\n');
    expect(folder.load({ AFTERWORD_ADMIN_TOKEN_FILE: 'token' }).config.adminToken).toBe('tok');
  });
});

describe('the environment', () => {
  const yaml = `listen: 127.0.0.1:1
projects: { p: { jwt: { secret: ${SECRET} } } }
webhooks: { maxBody: 1MiB, concurrency: 5 }
`;

  it('has a variable for every key', () => {
    expect([...variables().keys()].toSorted()).toEqual([
      'AFTERWORD_ADMIN',
      'AFTERWORD_ADMIN_TOKEN',
      'AFTERWORD_APPS',
      'AFTERWORD_APP_TIMEOUT',
      'AFTERWORD_ASYNC_MAX_REQUEST',
      'AFTERWORD_ASYNC_MAX_STARTS',
      'AFTERWORD_ASYNC_RETENTION',
      'AFTERWORD_ASYNC_TIMEOUT',
      'AFTERWORD_DATA',
      'AFTERWORD_DATABASE',
      'AFTERWORD_DATABASE_CONNECTIONS',
      'AFTERWORD_DATABASE_PASSWORD',
      'AFTERWORD_ENCRYPTION_KEY',
      'AFTERWORD_LISTEN',
      'AFTERWORD_LOG_LEVEL',
      'AFTERWORD_PROJECTS',
      'AFTERWORD_ROLE',
      'AFTERWORD_WEBHOOKS_ALLOW_TARGETS',
      'AFTERWORD_WEBHOOKS_ATTEMPT_TIMEOUT',
      'AFTERWORD_WEBHOOKS_COMMIT_WAIT',
      'AFTERWORD_WEBHOOKS_CONCURRENCY',
      'AFTERWORD_WEBHOOKS_MAX_BODY',
      'AFTERWORD_WEBHOOKS_PER_TARGET',
      'AFTERWORD_WEBHOOKS_RETENTION',
      'AFTERWORD_WORKERS',
    ]);
  });

  it('wins over the file, key by key', () => {
    const { config } = createFolder(yaml).load({
      AFTERWORD_LISTEN: ':2',
      AFTERWORD_LOG_LEVEL: 'warn',
      AFTERWORD_ROLE: 'all',
      AFTERWORD_WORKERS: '1',
      AFTERWORD_WEBHOOKS_CONCURRENCY: '7',
      AFTERWORD_WEBHOOKS_ALLOW_TARGETS: '10.0.0.0/8, localhost',
      AFTERWORD_ASYNC_MAX_STARTS: '3',
      AFTERWORD_APP_TIMEOUT: '2s',
    });
    expect(config).toMatchObject({
      listen: { host: '::', port: 2 },
      logLevel: 'warn',
      appTimeout: 2000,
      webhooks: { maxBody: 1_048_576, concurrency: 7, allowTargets: ['10.0.0.0/8', 'localhost'] },
    });
    expect([...config.projects.keys()]).toEqual(['p']);
  });

  it('replaces projects and apps as a whole, as YAML or JSON', () => {
    const { config } = createFolder(yaml).load({
      AFTERWORD_PROJECTS: JSON.stringify({ q: { jwt: { secret: '${S}' } } }),
      AFTERWORD_APPS: 'q/a:\n  runtime: custom\n  url: http://127.0.0.1:1\n',
      S: SECRET,
    });
    expect([...config.projects.keys()]).toEqual(['q']);
    expect(config.projects.get('q')?.jwt).toEqual({ secret: SECRET });
    const place = config.apps.get('q')?.get('a')?.place;
    expect(place).toEqual({ kind: 'url', url: new URL('http://127.0.0.1:1/'), concurrency: 8 });
  });

  it('is taken literally otherwise', () => {
    expect(createFolder().load({ AFTERWORD_ADMIN_TOKEN: '${A}#$${' }).config.adminToken).toBe('${A}#$${');
    expect(createFolder().load({ AFTERWORD_ADMIN_TOKEN: '123' }).config.adminToken).toBe('123');
  });

  it.each([
    ['tok', 'tok'],
    ['tok\n', 'tok'],
    ['tok\r\n', 'tok'],
  ])('reads a value from a file: %j', (text, token) => {
    const folder = createFolder();
    folder.write('run/token', text);
    expect(folder.load({ AFTERWORD_ADMIN_TOKEN_FILE: 'run/token' }).config.adminToken).toBe(token);
  });

  it('trims one newline of a file, no more', () => {
    const folder = createFolder();
    folder.write('token', 'tok\n\n');
    expect(folder.mistakes({ AFTERWORD_ADMIN_TOKEN_FILE: 'token' })).toEqual([
      'AFTERWORD_ADMIN_TOKEN_FILE: adminToken: expected visible ASCII characters without spaces, in quotes',
    ]);
  });

  it('reads projects from a file', () => {
    const folder = createFolder();
    folder.write('p.yaml', `p:\n  jwt: { secret: ${SECRET} }\n`);
    expect([...folder.load({ AFTERWORD_PROJECTS_FILE: 'p.yaml' }).config.projects.keys()]).toEqual(['p']);
  });

  it.each([
    [{ AFTERWORD_LISTEN: 'x' }, 'AFTERWORD_LISTEN: listen: expected host:port'],
    [{ AFTERWORD_LISTEN: '' }, 'AFTERWORD_LISTEN: listen: expected host:port'],
    [
      { AFTERWORD_DATABASE: 'x', AFTERWORD_ENCRYPTION_KEY: 'ab'.repeat(32) },
      'AFTERWORD_DATABASE: database: expected postgres://',
    ],
    [
      { AFTERWORD_WEBHOOKS_ALLOW_TARGETS: 'a,,b' },
      'AFTERWORD_WEBHOOKS_ALLOW_TARGETS: webhooks.allowTargets[1]: expected',
    ],
    [{ AFTERWORD_PROJECTS: 'p:\n  jwt: {}' }, 'AFTERWORD_PROJECTS: projects.p.jwt: expected exactly one'],
    [{ AFTERWORD_PROJECTS: 'p: {x' }, 'AFTERWORD_PROJECTS: projects: '],
    [{ AFTERWORD_APPS: '[]' }, 'AFTERWORD_APPS: apps: expected a map'],
    [{ AFTERWORD_APPS: 'a: 1\na: 1' }, 'AFTERWORD_APPS: apps.a: is given twice'],
    [
      { AFTERWORD_DATA_FILE: 'nope' },
      'AFTERWORD_DATA_FILE: data: the file cannot be read: there is no such file',
    ],
    [
      { AFTERWORD_DATA: 'a', AFTERWORD_DATA_FILE: 'b' },
      'AFTERWORD_DATA: data: expected one of AFTERWORD_DATA and AFTERWORD_DATA_FILE; both are set',
    ],
    [
      { AFTERWORD_LISTEM: 'x' },
      'AFTERWORD_LISTEM: is not a variable of Afterword (did you mean AFTERWORD_LISTEN?)',
    ],
    [{ AFTERWORD_WEBHOOKS: '{}' }, 'AFTERWORD_WEBHOOKS: is not a variable of Afterword'],
    [{ AFTERWORD_PORT: '80' }, 'AFTERWORD_PORT: is not a variable of Afterword'],
    [{ AFTERWORD_CONFIG_FILE: 'x' }, 'AFTERWORD_CONFIG_FILE: is not a variable of Afterword'],
  ])('is checked: %o', (env, mistake) => {
    const [first] = createFolder().mistakes(env);
    expect(first).toContain(mistake);
  });

  it('may have variables of others', () => {
    const folder = createFolder('adminToken: ${AFTERWORD_OF_MINE}');
    const env = {
      AFTERWORD_OF_MINE: 't',
      AFTERWORD_TEST_ANYTHING: '1',
      AFTERWORD_FAULTS: 'long',
      AFTERWORD_UNSET: undefined,
      OTHER: '1',
    };
    expect(folder.mistakes(env)).toEqual([]);
  });

  it('may have the links that Kubernetes makes for a service called afterword', () => {
    const links = {
      AFTERWORD_SERVICE_HOST: '10.0.0.1',
      AFTERWORD_SERVICE_PORT: '80',
      AFTERWORD_SERVICE_PORT_HTTP: '80',
      AFTERWORD_PORT: 'tcp://10.0.0.1:80',
      AFTERWORD_PORT_80_TCP_ADDR: '10.0.0.1',
      AFTERWORD_ADMIN_SERVICE_HOST: '10.0.0.2',
      AFTERWORD_ADMIN_PORT_81_TCP: 'tcp://10.0.0.2:81',
    };
    expect(createFolder().mistakes(links)).toEqual([]);
  });
});

describe('mistakes', () => {
  it('are reported all at once, the file by line and then the environment', () => {
    const folder = createFolder(`admin: 0.0.0.0:8081
encryptionKey: tooshort
listne: :80
projects:
  p-demo:
    jwt: { secret: \${UNSET_SECRET}, publicKey: nope.pem }
    maxPending: lots
apps:
  p-demo/hello: { runtime: cortex, entry: ./main.ts }
  other/chat: { runtime: customer, url: "chat:9000" }
webhooks:
  attemptTimeout: 15
  attemptTimeout: 16s
  allow_targets: []
`);
    const found = folder.mistakes({ AFTERWORD_APP_TIMEOUT: 'soon', AFTERWORD_WEBHOOK_RETENTION: '1d' });
    expect(found.map(line => line.split(/: (?=is|the|expected|only|there)/)[0])).toEqual([
      'afterword.yaml:1: adminToken',
      'afterword.yaml:2: encryptionKey',
      'afterword.yaml:3: listne',
      'afterword.yaml:6: projects.p-demo.jwt.secret',
      'afterword.yaml:6: projects.p-demo.jwt',
      'afterword.yaml:6: projects.p-demo.jwt.publicKey',
      'afterword.yaml:7: projects.p-demo.maxPending',
      'afterword.yaml:9: apps.p-demo/hello.entry',
      'afterword.yaml:10: apps.other/chat',
      'afterword.yaml:10: apps.other/chat.runtime',
      'afterword.yaml:10: apps.other/chat.url',
      'afterword.yaml:12: webhooks.attemptTimeout',
      'afterword.yaml:13: webhooks.attemptTimeout',
      'afterword.yaml:14: webhooks.allow_targets',
      'AFTERWORD_WEBHOOK_RETENTION',
      'AFTERWORD_APP_TIMEOUT: appTimeout',
    ]);
    expect(found).toContain('afterword.yaml:3: listne: is not a known key (did you mean listen?)');
    expect(found).toContain(
      'afterword.yaml:14: webhooks.allow_targets: is not a known key (did you mean allowTargets?)',
    );
    expect(found.at(-2)).toContain('(did you mean AFTERWORD_WEBHOOKS_RETENTION?)');
  });

  it('in a shared block are told where they stand', () => {
    const folder = createFolder(`projects:
  a: &shared
    jwt: { secret: ${SECRET} }
    maxPending: none
  b: *shared
`);
    expect(folder.mistakes()).toEqual([
      'afterword.yaml:4: projects.a.maxPending: expected a whole number from 1 to 1000000000',
      'afterword.yaml:4: projects.b.maxPending: expected a whole number from 1 to 1000000000',
    ]);
  });

  it.each([
    'adminToken: [CANARY]',
    'adminToken: "CANARY x"',
    'adminToken: { a: CANARY }',
    'encryptionKey: CANARY',
    'encryptionKey: [CANARY]',
    'adminToken: *CANARY',
    'adminToken: !CANARY x',
    'adminToken: @CANARY',
    'adminToken: "CANARY\n',
    'adminToken: a: CANARY: b',
    'adminToken: ${CANARY',
    'database: postgres://u:CANARY@h/d',
    'database: postgres://u:CANARY?@h/d',
    'database: postgres://u:CAN#CANARY@h/d',
    'database: postgres://u:p@h/d?CANARY=CANARY',
    'database: postgres://u:p@h/d?sslmode=CANARY',
    'database: postgres://u:p@h/d?sslmode=verify-full&sslrootcert=CANARY',
    'database: postgres://u@h/d\ndatabasePassword: [CANARY]',
    'databaseConnections: CANARY',
    'listen: CANARY',
    'data: [CANARY]',
    'appTimeout: CANARY',
    'logLevel: CANARY',
    'role: CANARY',
    'projects: { p: { jwt: { secret: [CANARY] } } }',
    'projects: { p: { jwt: { secret: CANARY, jwksUrl: http://CANARY } } }',
    'projects: { p: { jwt: { publicKey: CANARY } } }',
    'projects: { p: { jwt: CANARY } }',
    'projects: { p: { jwt: { secret: a }, maxPending: CANARY, requireSecret: CANARY } }',
    'webhooks: { allowTargets: ["CANARY!"], maxBody: CANARY }',
    'apps: { p/a: { runtime: CANARY, url: "http://u:CANARY@h" } }',
    'apps: { p/a: { runtime: cortex, entry: CANARY.ts, cwd: CANARY, python: [CANARY], replicas: CANARY } }',
    'apps: { p/a: { runtime: cortex, entry: CANARY.rb } }',
    'apps: { p/a: { runtime: custom, command: CANARY, env: { A: [CANARY] }, port: CANARY } }',
    'apps: { p/a: { runtime: custom, command: [a], env: CANARY, health: CANARY, start: CANARY } }',
  ])('never show a value: %s', yaml => {
    const direct = createFolder(yaml).mistakes();
    expect(direct.length).toBeGreaterThan(0);
    expect(direct.join('\n')).not.toContain('CANARY');
  });

  it.each([...variables().keys()])('never show the value of %s', variable => {
    const found = createFolder().mistakes({ [variable]: 'CANARY {', AFTERWORD_NONSENSE: 'CANARY' });
    expect(found).not.toEqual([]);
    expect(found.join('\n')).not.toContain('CANARY');
  });
});
