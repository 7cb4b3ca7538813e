/** Keeps docs/configuration.md true: every key with its variable and default, and examples that load. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { describeConfigData } from '../../src/config/describe.ts';
import { variables } from '../../src/config/environment.ts';
import { APP, HOSTED_APP, JWT, PROJECT } from '../../src/config/schema.ts';
import { createFolder } from './folder.ts';

const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');

function lookUp(data: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], data);
}

describe('docs/configuration.md', () => {
  it.each([...variables()])('has a row for %s', (variable, path) => {
    const row = text.split('\n').find(line => line.startsWith(`| [\`${path.join('.')}\`]`));
    expect(row).toContain(`\`${variable}\``);
  });

  it('gives the defaults that hold', () => {
    const data = describeConfigData(createFolder('async: { timeout: 15m }').load());
    const rows = text.matchAll(/^\| \[`([\w.]+)`\]\(#[\w-]+\) *\|[^|]*\| `([^`]+)` *\|/gm);
    const written = [...rows]
      .map(([, key, value]) => [key!, value!] as const)
      .filter(([key]) => key !== 'data');
    expect(written.length).toBeGreaterThan(15);
    const effective = written.map(([key]) => [key, String(lookUp(data, key.split('.')))]);
    expect(effective).toEqual(written);
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
      const env = {
        HOST: '127.0.0.1',
        DEMO_JWT_SECRET: 'x'.repeat(32),
        ADMIN_TOKEN: 't',
        ENCRYPTION_KEY: 'ab'.repeat(32),
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
