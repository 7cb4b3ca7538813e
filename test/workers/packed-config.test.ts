/** A configuration gets to a worker as it is, except for the limits that its share is of. */
import { isDeepStrictEqual } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { packConfig, shareOf, unpackConfig } from '../../src/workers/packed-config.ts';

const FILE = {
  AFTERWORD_PROJECTS: undefined,
  AFTERWORD_LISTEN: '127.0.0.1:0',
  AFTERWORD_ENCRYPTION_KEY: Buffer.alloc(32, 5).toString('base64'),
};

function config(more: Partial<Config> = {}): Config {
  const { config: loaded } = loadConfig({ env: FILE, cwd: '/' });
  const place = { kind: 'url', url: new URL('http://10.0.0.1:9000/base'), concurrency: 8 } as const;
  const app = { projectId: 'p', name: 'a', runtime: 'custom', place, forwardAuthorization: false } as const;
  const project = {
    id: 'p',
    jwt: { jwksUrl: new URL('https://keys.example/jwks') },
    standardWebhooks: true,
    requireSecret: false,
    maxPending: 10,
  };
  return {
    ...loaded,
    projects: new Map([['p', project]]),
    apps: new Map([['p', new Map([['a', app]])]]),
    ...more,
  };
}

const travel = <T>(value: T): T => deserialize(serialize(value)) as T;

describe('a configuration that travels', () => {
  it('arrives as it was', () => {
    const sent = config();
    const got = unpackConfig(travel(packConfig(sent)));
    expect(got.apps.get('p')!.get('a')!.place).toEqual({
      kind: 'url',
      url: new URL('http://10.0.0.1:9000/base'),
      concurrency: 8,
    });
    expect(got.projects.get('p')!.jwt.jwksUrl).toBeInstanceOf(URL);
    expect(got.encryptionKeys[0]).toBeInstanceOf(Uint8Array);
    expect(isDeepStrictEqual(got, sent)).toBe(true);
  });

  it('keeps the check of a certificate that may be for any name', () => {
    const ssl = { rejectUnauthorized: true, ca: 'pem', checkServerIdentity: () => undefined };
    const database = { host: 'db', port: 5432, database: 'd', user: 'u', connections: 8, ssl };
    const got = unpackConfig(travel(packConfig(config({ database }))));
    expect(got.database).toEqual({ ...database, ssl: { ...ssl, checkServerIdentity: expect.any(Function) } });
    expect(got.database!.ssl!.checkServerIdentity!()).toBeUndefined();
  });
});

describe('the share of one worker', () => {
  it.each([
    [256, 32, 1, 256, 32],
    [256, 32, 4, 64, 8],
    [10, 5, 3, 3, 1],
    [3, 1, 8, 1, 1],
  ])('concurrency %d and perTarget %d by %d: %d and %d', (concurrency, perTarget, workers, ...share) => {
    const { webhooks } = config();
    const { webhooks: divided } = shareOf(
      config({ webhooks: { ...webhooks, concurrency, perTarget } }),
      workers,
    );
    expect(divided).toEqual({ ...webhooks, concurrency: share[0], perTarget: share[1] });
  });
});
