/** Keeps docs/configuration.md true: every key with its variable and default, and examples that load. */
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeConfigData } from '../../src/config/describe.ts';
import { variables } from '../../src/config/environment.ts';
import { APP, HOSTED_APP, JWT, PROJECT } from '../../src/config/schema.ts';
import { PARAMETERS, SSL_MODES } from '../../src/config/database-url.ts';
import { namesIn, tableOf } from '../docs/markdown.ts';
import { makeCertificate } from '../support/certificate.ts';
import { createFolder } from './folder.ts';

const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');

function lookUp(data: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], data);
}

/** From a heading to the next. */
function sectionOf(heading: string): string {
  const start = text.indexOf(`${heading}\n`) + heading.length;
  return text.slice(start, text.indexOf('\n#', start));
}

describe('docs/configuration.md', () => {
  it.each([...variables()])('has a row for %s', (variable, path) => {
    const row = text.split('\n').find(line => line.startsWith(`| [\`${path.join('.')}\`]`));
    expect(row).toContain(`\`${variable}\``);
  });

  it('gives the defaults that hold', () => {
    const shared = { AFTERWORD_DATABASE: 'postgres://u@h/d', AFTERWORD_ENCRYPTION_KEY: 'ab'.repeat(32) };
    const data = describeConfigData(createFolder().load(shared));
    const rows = text.matchAll(/^\| \[`([\w.]+)`\]\(#[\w-]+\) *\|[^|]*\| `([^`]+)` *\|/gm);
    const written = [...rows]
      .map(([, key, value]) => [key!, value!] as const)
      .filter(([key]) => key !== 'data');
    expect(written.length).toBeGreaterThan(15);
    const effective = written.map(([key]) => [key, String(lookUp(data, key.split('.')))]);
    expect(effective).toEqual(written);
  });

  it('gives the defaults that hold for an app', () => {
    const app = (keys: string): Record<string, unknown> => {
      const folder = createFolder(
        `projects: { p: { jwt: { secret: ${'x'.repeat(32)} } } }\napps: { p/a: { ${keys} } }`,
      );
      folder.write('fn/main.py', '');
      return lookUp(describeConfigData(folder.load()), ['apps', 'p/a']) as Record<string, unknown>;
    };
    const [elsewhere, functions, server] = [
      app('runtime: custom, url: http://x'),
      app('runtime: cortex, entry: fn/main.py'),
      app('runtime: custom, command: [a]'),
    ];
    const defaults = (heading: string): Map<string, string> => {
      const rows = sectionOf(heading).matchAll(/^\| `(\w+)` *\|[^|]*\| ([^|]*?) *\|/gm);
      return new Map([...rows].map(([, key, value]) => [key!, value!]));
    };
    const ofAll = defaults('## Apps');
    expect([...ofAll.keys()].toSorted()).toEqual(Object.keys(APP).toSorted());
    expect(elsewhere['concurrency']).toBe(functions['concurrency']);
    expect(ofAll.get('concurrency')).toBe(
      `\`${String(functions['concurrency'])}\` with \`url\` or \`entry\`, \`${String(server['concurrency'])}\` with \`command\``,
    );
    const written = defaults('### Apps that run here');
    expect([...written.keys()].toSorted()).toEqual(Object.keys(HOSTED_APP).toSorted());
    for (const key of ['replicas', 'queue', 'start']) {
      expect([functions[key], server[key]].map(value => `\`${String(value)}\``)).toEqual([
        written.get(key),
        written.get(key),
      ]);
    }
    expect(written.get('python')).toBe(`\`${String(functions['python'])}\``);
    for (const key of ['port', 'health', 'env']) expect(server).not.toHaveProperty(key);
  });

  it('tells which variables apps get even if the configuration refers to them', () => {
    const [, listed] = /`\$\{…\}`, also in a comment.*?secrets\. (.*?) are passed on even so/.exec(text)!;
    const names = [...listed!.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
    const env = Object.fromEntries([...names, 'OTHER'].map(name => [name, 'x']));
    const yaml = `# ${Object.keys(env)
      .map(name => `\${${name}}`)
      .join(' ')}`;
    expect(Object.keys(createFolder(yaml).load(env).config.appEnvironment)).toEqual(names);
  });

  it('has every parameter of a database and every sslmode', () => {
    const section = sectionOf('### A shared database');
    const told = (column: string) => tableOf(section, column).flatMap(([names]) => namesIn(names!));
    expect(told('parameter')).toEqual(PARAMETERS);
    expect(told('mode')).toEqual(SSL_MODES);
  });

  it.each([
    ...Object.keys({ ...APP, ...HOSTED_APP, ...PROJECT }),
    ...Object.keys(JWT).map(key => `jwt.${key}`),
  ])('tells of the key %s', key => expect(text).toContain(`\`${key}\``));

  it.each([...text.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml]) => yaml!))(
    'has an example that loads: %j',
    yaml => {
      const folder = createFolder(yaml);
      folder.write('keys/p-team.pem', EXAMPLE_KEY);
      makeCertificate(join(folder.path, 'keys'), 'db.internal');
      renameSync(join(folder.path, 'keys', 'cert.pem'), join(folder.path, 'keys', 'ca.pem'));
      for (const file of ['hello/main.ts', 'score/main.py', 'web/server.js'])
        folder.write(`apps/${file}`, '');
      const env = {
        HOST: '127.0.0.1',
        DEMO_JWT_SECRET: 'x'.repeat(32),
        ADMIN_TOKEN: 't',
        ENCRYPTION_KEY: 'ab'.repeat(32),
        NEW_KEY: 'cd'.repeat(32),
        OLD_KEY: 'ab'.repeat(32),
        DB_PASSWORD: 'p',
        SCORE_API_KEY: 'k',
        ...(!yaml.includes('projects:') && {
          AFTERWORD_PROJECTS: 'p-demo: { jwt: { secret: ${DEMO_JWT_SECRET} } }',
        }),
      };
      expect(folder.mistakes(env)).toEqual([]);
      expect(folder.load(env).warnings).toEqual([]);
    },
  );
});

const EXAMPLE_KEY = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
`;
