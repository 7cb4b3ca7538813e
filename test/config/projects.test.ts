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
