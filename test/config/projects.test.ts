import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createFolder } from './folder.ts';

const SECRET = 'x'.repeat(32);
const project = (jwt: string) => `projects:\n  p:\n    jwt: ${jwt}\n`;

describe('a project', () => {
  it('has defaults', () => {
    const { config, warnings } = createFolder(project(`{ secret: ${SECRET} }`)).load();
    expect(config.projects.get('p')).toEqual({
      id: 'p',
      jwt: { secret: SECRET },
      standardWebhooks: false,
      requireSecret: false,
      maxPending: 100_000,
    });
    expect(warnings).toEqual([]);
  });

  it('takes every key, also as text of a variable', () => {
    const yaml = `${project('{ jwksUrl: https://idp.example/keys, issuer: me, audience: you }')}
    standardWebhooks: true
    requireSecret: \${FLAG}
    maxPending: \${COUNT}
`;
    expect(createFolder(yaml).load({ FLAG: 'true', COUNT: '7' }).config.projects.get('p')).toEqual({
      id: 'p',
      jwt: { jwksUrl: new URL('https://idp.example/keys'), issuer: 'me', audience: 'you' },
      standardWebhooks: true,
      requireSecret: true,
      maxPending: 7,
    });
  });

  it.each(['a', 'A-1_b', '0', '007', 'constructor', 'a'.repeat(63)])('can be called %s', id => {
    const { config } = createFolder(`projects:\n  ${id}: { jwt: { secret: ${SECRET} } }`).load();
    expect([...config.projects.keys()]).toEqual([id]);
  });
  it.each(['_a', '-a', 'a.b', 'a/b', '"a b"', 'ä', '__proto__', 'a'.repeat(64)])(
    'cannot be called %s',
    id => {
      const found = createFolder(`projects:\n  ${id}: { jwt: { secret: ${SECRET} } }`).mistakes();
      expect(found).toEqual([expect.stringContaining("is not a project's name; expected letters, digits")]);
    },
  );

  it.each([
    ['5', 'projects.p: expected a map'],
    ['{}', 'projects.p.jwt: expected exactly one of secret, publicKey, jwksUrl'],
    ['', 'projects.p.jwt: expected exactly one of secret, publicKey, jwksUrl'],
    ['{ jwt: s }', 'projects.p.jwt: expected a map'],
    ['{ jwt: { issuer: i } }', 'projects.p.jwt: expected exactly one of secret, publicKey, jwksUrl'],
    [`{ jwt: { secret: ${SECRET}, jwksUrl: https://x } }`, 'projects.p.jwt: expected exactly one of'],
    ['{ jwt: { secret: 12345 } }', 'projects.p.jwt.secret: expected text'],
    ['{ jwt: { secret: "" } }', 'projects.p.jwt.secret: expected text that is not empty'],
    [
      `{ jwt: { secret: ${SECRET}, isuer: i } }`,
      'projects.p.jwt.isuer: is not a known key (did you mean issuer?)',
    ],
    [
      `{ jwt: { secret: ${SECRET} }, requireSecret: yes }`,
      'projects.p.requireSecret: expected true or false',
    ],
    [
      `{ jwt: { secret: ${SECRET} }, maxPending: 0 }`,
      'projects.p.maxPending: expected a whole number from 1',
    ],
    [
      `{ jwt: { secret: ${SECRET} }, maxPendng: 1 }`,
      'projects.p.maxPendng: is not a known key (did you mean maxPending?)',
    ],
  ])('cannot be %s', (value, mistake) => {
    const found = createFolder(`projects:\n  p: ${value}\n`).mistakes();
    expect(found).toEqual([expect.stringContaining(`afterword.yaml:2: ${mistake}`)]);
  });

  it('has a secret of at least 32 bytes, or a warning', () => {
    const { warnings, config } = createFolder(project('{ secret: hunter2 }')).load();
    expect(config.projects.get('p')?.jwt.secret).toBe('hunter2');
    expect(warnings).toEqual([
      expect.stringContaining('afterword.yaml:3: projects.p.jwt.secret: is shorter than 32 bytes'),
    ]);
    expect(warnings.join()).not.toContain('hunter2');
    expect(createFolder(project(`{ secret: ${'ü'.repeat(16)} }`)).load().warnings).toEqual([]);
  });

  it.each([
    'https://idp.example/keys?v=1',
    'http://127.0.0.1:9/keys',
    'http://[::1]/k',
    'http://localhost/k',
  ])('takes the keys at %s', url => {
    const { config } = createFolder(project(`{ jwksUrl: "${url}" }`)).load();
    expect(config.projects.get('p')?.jwt.jwksUrl?.href).toBe(url);
  });
  it.each([
    'http://idp.example/keys',
    'http://10.0.0.1/keys',
    'ftp://localhost/keys',
    'https://user:pw@idp.example/keys',
    'https://idp.example/keys#a',
    'https:idp.example',
    'idp.example/keys',
    'https:///keys',
  ])('refuses the keys at %s', url => {
    expect(createFolder(project(`{ jwksUrl: "${url}" }`)).mistakes()).toEqual([
      'afterword.yaml:3: projects.p.jwt.jwksUrl: expected an https:// URL (http:// for loopback only) without credentials or fragment',
    ]);
  });
});

describe('a public key', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const pem = publicKey.export({ type: 'spki', format: 'pem' });

  it('is read from a file beside the configuration file', () => {
    const folder = createFolder();
    folder.write('etc/conf.yaml', project('{ publicKey: keys/p.pem }'));
    const file = folder.write('etc/keys/p.pem', pem);
    const { config, keyFiles } = folder.load({}, 'etc/conf.yaml');
    expect(config.projects.get('p')?.jwt).toEqual({ publicKey: pem });
    expect(keyFiles).toEqual(new Map([['p', file]]));
  });

  it('is read from the working directory where a variable names it', () => {
    const folder = createFolder();
    folder.write('etc/conf.yaml', '');
    folder.write('p.jwk', JSON.stringify(publicKey.export({ format: 'jwk' })));
    const { config } = folder.load({ AFTERWORD_PROJECTS: 'p: {jwt: {publicKey: p.jwk}}' }, 'etc/conf.yaml');
    expect(config.projects.get('p')?.jwt.publicKey).toContain('"kty"');
  });

  it('is checked', () => {
    const folder = createFolder(project('{ publicKey: p.pem }'));
    expect(folder.mistakes()).toEqual([
      'afterword.yaml:3: projects.p.jwt.publicKey: the file cannot be read: there is no such file',
    ]);
    const secret = privateKey.export({ type: 'pkcs8', format: 'pem' });
    folder.write('p.pem', secret);
    const found = folder.mistakes();
    expect(found).toEqual([
      expect.stringContaining('afterword.yaml:3: projects.p.jwt.publicKey: the file is a private key'),
    ]);
    expect(found.join()).not.toContain(secret.split('\n')[1]);
  });
});

describe('an app', () => {
  const apps = (text: string) => `${project(`{ secret: ${SECRET} }`)}apps:\n${text}`;

  it('is found by project and name', () => {
    const yaml = apps(`  p/hello: { runtime: cortex, url: http://10.0.0.5:9000/base/ }
  p/chat: { runtime: custom, url: https://chat.internal, forwardAuthorization: true }
`);
    expect(createFolder(yaml).load().config.apps).toEqual(
      new Map([
        [
          'p',
          new Map([
            [
              'hello',
              {
                projectId: 'p',
                name: 'hello',
                runtime: 'cortex',
                url: new URL('http://10.0.0.5:9000/base/'),
                forwardAuthorization: false,
              },
            ],
            [
              'chat',
              {
                projectId: 'p',
                name: 'chat',
                runtime: 'custom',
                url: new URL('https://chat.internal'),
                forwardAuthorization: true,
              },
            ],
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

  const hosting = 'hosting apps as processes is not part of this version; give `url`';
  it.each([
    ['{ url: http://x }', ['runtime: is needed: expected one of cortex, custom']],
    ['{ runtime: lambda, url: http://x }', ['runtime: expected one of cortex, custom']],
    ['{ runtime: cortex }', ['url: is needed: expected an http:// or https:// URL']],
    ['{ runtime: cortex, entry: ./main.ts, replicas: 1, concurrency: 8 }', [`entry: ${hosting}`]],
    [
      '{ runtime: custom, command: [python3, server.py], port: 9001, health: /health }',
      [`command: ${hosting}`],
    ],
    ['{ runtime: cortex, entry: ./main.ts, url: http://x }', [`entry: ${hosting}`]],
    ['{ runtime: cortex, entry: ./main.ts, url: x }', [`url: expected an http://`, `entry: ${hosting}`]],
    [
      '{ runtime: custom, url: http://x, forwardAuthorization: 1 }',
      ['forwardAuthorization: expected true or false'],
    ],
    ['{ runtime: custom, url: http://x, port: 0 }', ['port: expected a whole number from 1 to 65535']],
    ['{ runtime: custom, url: http://x, health: health }', ['health: expected a path that starts with /']],
    ['{ runtime: custom, url: http://x, env: [a] }', ['env: expected a map of names to text']],
    [
      '{ runtime: custom, urll: http://x }',
      ['urll: is not a known key (did you mean url?)', 'url: is needed'],
    ],
  ])('cannot be %s', (value, mistakes) => {
    const found = createFolder(apps(`  p/a: ${value}`)).mistakes();
    for (const text of mistakes) {
      expect(found).toContainEqual(expect.stringContaining(`afterword.yaml:5: apps.p/a.${text}`));
    }
    expect(found).toHaveLength(mistakes.length);
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

  it('loads with keys of hosted apps, which have no effect', () => {
    const yaml = apps('  p/a:\n    runtime: custom\n    url: http://x\n    replicas: 2\n    env: { A: b }\n');
    const { config, warnings } = createFolder(yaml).load();
    expect(Object.keys(config.apps.get('p')!.get('a')!)).not.toContain('replicas');
    expect(warnings).toEqual([
      'afterword.yaml:8: apps.p/a.replicas: has no effect on an app reached by `url`',
      'afterword.yaml:9: apps.p/a.env: has no effect on an app reached by `url`',
    ]);
  });
});
