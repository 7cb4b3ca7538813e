import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type JWTPayload, SignJWT } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { JwtKeys, ProjectConfig } from '../../src/config/config.ts';
import { Problem, type ProblemCode, UsageError } from '../../src/errors.ts';
import { type Authenticator, createAuthenticator } from '../../src/gateway/auth.ts';
import { silentLogger } from '../../src/log.ts';
import { issueToken } from '../../src/token.ts';

const START = 1_750_000_000;
const SECRET = 'the secret of this project';

interface DrivenClock extends Clock {
  advance(seconds: number): void;
  /** What waits, to be run by hand. */
  readonly waiting: Set<() => void>;
}

function drivenClock(): DrivenClock {
  let time = START * 1000;
  const waiting = new Set<() => void>();
  return {
    waiting,
    now: () => time,
    elapsed: () => time - START * 1000,
    after(_ms, task) {
      waiting.add(task);
      return () => waiting.delete(task);
    },
    advance(seconds) {
      time += seconds * 1000;
    },
  };
}

function authenticator(projects: Record<string, JwtKeys>, clock: Clock): Authenticator {
  const configured = Object.entries(projects).map(([id, jwt]): [string, ProjectConfig] => [
    id,
    { id, jwt, standardWebhooks: false, requireSecret: false, maxPending: 1 },
  ]);
  return createAuthenticator({ projects: new Map(configured), clock, log: silentLogger });
}

type SigningKey = KeyObject | Uint8Array;

interface Signing {
  readonly alg: string;
  readonly key: SigningKey;
  readonly kid?: string;
}

const HS256: Signing = { alg: 'HS256', key: Buffer.from(SECRET) };

async function sign({ alg, key, kid }: Signing, claims: JWTPayload = {}): Promise<string> {
  const header = { alg, ...(kid === undefined ? {} : { kid }) };
  return await new SignJWT({ project_id: 'p', ...claims }).setProtectedHeader(header).sign(key);
}

const base64url = (text: string): string => Buffer.from(text).toString('base64url');

/** A token with any header at all, signed as HS256 with any bytes. */
function forged(header: object, claims: object, key: string | Buffer): string {
  const content = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`;
  return `${content}.${createHmac('sha256', key).update(content).digest('base64url')}`;
}

/** What the caller is told, or undefined where the call may go on. */
async function detailOf(auth: Authenticator, authorization: string): Promise<string | undefined> {
  try {
    await auth.check('p', authorization);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

async function refusal(
  auth: Authenticator,
  authorization: string | undefined,
  projectId = 'p',
): Promise<Problem> {
  try {
    await auth.check(projectId, authorization);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  throw new Error('not refused');
}

async function outcome(auth: Authenticator, token: string, projectId = 'p'): Promise<ProblemCode | 'ok'> {
  try {
    await auth.check(projectId, `Bearer ${token}`);
    return 'ok';
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' });
const jwk = (key: KeyObject, more: object = {}): string =>
  JSON.stringify({ ...key.export({ format: 'jwk' }), ...more });

describe('the Authorization header', () => {
  const NO_TOKEN = ['WWW-Authenticate', 'Bearer realm="afterword"'];
  const BAD_TOKEN = ['WWW-Authenticate', 'Bearer realm="afterword", error="invalid_token"'];

  it.each([
    ['is missing', () => undefined],
    ['is empty', () => ''],
    ['has no token', () => 'Bearer'],
    ['has only spaces for a token', () => 'Bearer   '],
    ['is of another scheme', () => 'Basic dTpw'],
    ['has no scheme', (token: string) => token],
    ['has a scheme that only begins alike', (token: string) => `Bearers ${token}`],
    ['has a tab for a space', (token: string) => `Bearer\t${token}`],
  ])('that %s is answered with a bare challenge', async (_, header) => {
    const auth = authenticator({ p: { secret: SECRET } }, drivenClock());
    const token = await sign(HS256);
    for (const projectId of ['p', 'unknown']) {
      const problem = await refusal(auth, header(token), projectId);
      expect([problem.code, problem.headers]).toEqual(['unauthorized', NO_TOKEN]);
    }
  });

  it.each([
    ['holds two tokens', (token: string) => `Bearer ${token} ${token}`],
    ['holds a list', (token: string) => `Bearer ${token}, Bearer ${token}`],
    ['ends in a comma', (token: string) => `Bearer ${token},`],
    ['holds quotes', (token: string) => `Bearer "${token}"`],
    ['is not a JWT', () => 'Bearer secret'],
    ['is nothing but dots', () => 'Bearer ..'],
    ['has a part too many', (token: string) => `Bearer ${token}.x`],
    ['has lost its signature', (token: string) => `Bearer ${token.slice(0, token.lastIndexOf('.') + 1)}`],
    ['was altered', (token: string) => `Bearer ${token.replace('.', '.e')}`],
    ['ends in a no-break space', (token: string) => `Bearer ${token}\xa0`],
  ])('that %s is answered as an invalid token', async (_, header) => {
    const auth = authenticator({ p: { secret: SECRET } }, drivenClock());
    const problem = await refusal(auth, header(await sign(HS256)));
    expect([problem.code, problem.headers]).toEqual(['unauthorized', BAD_TOKEN]);
  });

  it.each(['Bearer ', 'bearer ', 'BEARER ', 'Bearer   '])('may begin with %j', async scheme => {
    const auth = authenticator({ p: { secret: SECRET } }, drivenClock());
    await expect(auth.check('p', scheme + (await sign(HS256)))).resolves.toBeUndefined();
  });

  it('for an unknown project is answered exactly as a bad token is', async () => {
    const auth = authenticator({ p: { secret: SECRET } }, drivenClock());
    const good = `Bearer ${await sign(HS256)}`;
    const bad = await refusal(auth, `${good}x`);
    for (const projectId of ['unknown', '__proto__', 'P', 'p%2d', '']) {
      const unknown = await refusal(auth, good, projectId);
      expect([unknown.body('run'), unknown.headers]).toEqual([bad.body('run'), bad.headers]);
    }
  });
});

describe('the algorithm', () => {
  const keys: [string, JwtKeys, Signing][] = [
    ['HS256 by a secret', { secret: SECRET }, HS256],
    ['RS256 by a PEM', { publicKey: pem(rsa.publicKey) }, { alg: 'RS256', key: rsa.privateKey }],
    ['RS256 by a JWK', { publicKey: jwk(rsa.publicKey) }, { alg: 'RS256', key: rsa.privateKey }],
    ['ES256 by a PEM', { publicKey: `\n${pem(ec.publicKey)}` }, { alg: 'ES256', key: ec.privateKey }],
    [
      'ES256 by a JWK',
      { publicKey: jwk(ec.publicKey, { alg: 'ES256', use: 'sig' }) },
      { alg: 'ES256', key: ec.privateKey },
    ],
    ['EdDSA by a PEM', { publicKey: pem(ed.publicKey) }, { alg: 'EdDSA', key: ed.privateKey }],
    ['EdDSA by a JWK', { publicKey: jwk(ed.publicKey) }, { alg: 'EdDSA', key: ed.privateKey }],
  ];

  it.each(keys)('is %s, and no other', async (_, jwt, own) => {
    const auth = authenticator({ p: jwt }, drivenClock());
    const others: Signing[] = [
      HS256,
      { alg: 'HS512', key: HS256.key },
      { alg: 'RS256', key: rsa.privateKey },
      { alg: 'RS512', key: rsa.privateKey },
      { alg: 'PS256', key: rsa.privateKey },
      { alg: 'ES256', key: ec.privateKey },
      { alg: 'EdDSA', key: ed.privateKey },
    ];
    for (const signing of others) {
      expect(await outcome(auth, await sign(signing))).toBe(signing.alg === own.alg ? 'ok' : 'unauthorized');
    }
  });

  it.each(keys)('is not `none` and not HMAC with what the configuration shows, with %s', async (_, jwt) => {
    const auth = authenticator({ p: jwt }, drivenClock());
    const claims = { project_id: 'p' };
    const publicText = jwt.publicKey ?? pem(rsa.publicKey);
    for (const key of [publicText, publicText.trim(), `${publicText.trim()}\n`, '', 'p']) {
      expect(await outcome(auth, forged({ alg: 'HS256' }, claims, key))).toBe('unauthorized');
    }
    for (const alg of ['none', 'None', '', 'hs256', undefined, null, ['HS256']]) {
      expect(await outcome(auth, forged({ alg }, claims, SECRET))).toBe('unauthorized');
    }
    const unsigned = `${base64url('{"alg":"none"}')}.${base64url('{"project_id":"p"}')}.`;
    expect(await outcome(auth, unsigned)).toBe('unauthorized');
  });

  it.each([
    ['a critical extension', { alg: 'HS256', crit: ['x'], x: 1 }],
    ['an unencoded payload', { alg: 'HS256', crit: ['b64'], b64: false }],
  ])('does not excuse %s', async (_, header) => {
    const auth = authenticator({ p: { secret: SECRET } }, drivenClock());
    expect(await outcome(auth, forged(header, { project_id: 'p' }, SECRET))).toBe('unauthorized');
  });

  it('ignores keys that the token brings along', async () => {
    const auth = authenticator({ p: { publicKey: pem(rsa.publicKey) } }, drivenClock());
    const token = await new SignJWT({ project_id: 'p' })
      .setProtectedHeader({ alg: 'RS256', jwk: otherRsa.publicKey.export({ format: 'jwk' }) })
      .sign(otherRsa.privateKey);
    expect(await outcome(auth, token)).toBe('unauthorized');
  });

  it.each([
    ['a private PEM', rsa.privateKey.export({ type: 'pkcs8', format: 'pem' })],
    ['a private JWK', JSON.stringify(ec.privateKey.export({ format: 'jwk' }))],
    ['a symmetric JWK', '{"kty":"oct","k":"c2VjcmV0"}'],
    ['a short RSA key', pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey)],
    ['an RSA-PSS key', pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey)],
    ['another curve', pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey)],
    ['a key for agreement', pem(generateKeyPairSync('x25519').publicKey)],
    ['a JWK of another algorithm', jwk(rsa.publicKey, { alg: 'RS512' })],
    ['a JWK of another use', jwk(rsa.publicKey, { use: 'enc' })],
    ['broken JSON', '{'],
    ['no key at all', 'secret'],
  ])('cannot be pinned by %s', (_, publicKey) => {
    expect(() => authenticator({ p: { publicKey } }, drivenClock())).toThrow(UsageError);
  });

  it('needs a key', () => {
    expect(() => authenticator({ p: {} }, drivenClock())).toThrow(UsageError);
    expect(() => authenticator({ p: { secret: '' } }, drivenClock())).toThrow(UsageError);
  });
});

describe('the claims', () => {
  it.each<[string, JWTPayload, string | undefined]>([
    ['no times', {}, undefined],
    ['exp to come', { exp: START + 1 }, undefined],
    ['exp just within the skew', { exp: START - 4 }, undefined],
    ['exp just out of the skew', { exp: START - 5 }, 'The token has expired'],
    ['nbf past', { nbf: START - 100 }, undefined],
    ['nbf just within the skew', { nbf: START + 5 }, undefined],
    ['nbf just out of the skew', { nbf: START + 6 }, 'The token is not valid yet'],
    [
      'exp that is no number',
      { exp: '2040' as unknown as number },
      'The token lacks a usable claim that the project expects',
    ],
    ['no project', { project_id: undefined }, 'The token lacks a usable claim that the project expects'],
    [
      'a project that is no string',
      { project_id: ['p'] },
      'The token lacks a usable claim that the project expects',
    ],
  ])('%s', async (_, claims, detail) => {
    const auth = authenticator({ p: { secret: SECRET } }, drivenClock());
    const told = await detailOf(auth, `Bearer ${await sign(HS256, claims)}`);
    expect(told).toBe(detail);
  });

  it('must come from the issuer and be for the audience where the project says so', async () => {
    const jwt = { secret: SECRET, issuer: 'https://issuer.example', audience: 'calls' };
    const auth = authenticator({ p: jwt }, drivenClock());
    const right = { iss: 'https://issuer.example', aud: ['other', 'calls'] };
    expect(await outcome(auth, await sign(HS256, right))).toBe('ok');
    for (const wrong of [
      {},
      { iss: 'https://issuer.example/' },
      { aud: 'Calls' },
      { iss: undefined },
      { aud: [] },
    ]) {
      const claims = Object.keys(wrong).length === 0 ? {} : { ...right, ...wrong };
      expect(await outcome(auth, await sign(HS256, claims as JWTPayload))).toBe('unauthorized');
    }
  });

  it('of a token that issueToken makes are accepted', async () => {
    const clock = drivenClock();
    const jwt = { secret: SECRET, issuer: 'https://issuer.example', audience: 'calls' };
    const auth = authenticator({ p: jwt }, clock);
    expect(await outcome(auth, await issueToken({ ...jwt, projectId: 'p', ttlSeconds: 60, clock }))).toBe(
      'ok',
    );
  });
});

describe('many projects', () => {
  const projects: Record<string, JwtKeys> = {
    p: { secret: SECRET },
    q: { secret: 'the secret of another project' },
    r: { publicKey: pem(rsa.publicKey) },
    shared: { secret: SECRET, audience: 'shared' },
  };
  const qKey: Signing = { alg: 'HS256', key: Buffer.from('the secret of another project') };

  it.each<[string, string, Signing, JWTPayload, ProblemCode | 'ok']>([
    ['its own token', 'p', HS256, {}, 'ok'],
    ['its own keys, another claim', 'p', HS256, { project_id: 'q' }, 'wrong_project'],
    [
      'its own keys, the claim of a project that is not there',
      'p',
      HS256,
      { project_id: 'x' },
      'wrong_project',
    ],
    ["another project's token", 'p', qKey, { project_id: 'q' }, 'wrong_project'],
    [
      "another project's token of another algorithm",
      'p',
      { alg: 'RS256', key: rsa.privateKey },
      { project_id: 'r' },
      'wrong_project',
    ],
    ["another project's token, expired", 'p', qKey, { project_id: 'q', exp: START - 60 }, 'unauthorized'],
    ["another project's keys, this claim", 'p', qKey, {}, 'unauthorized'],
    ["another project's keys, a third claim", 'p', qKey, { project_id: 'r' }, 'unauthorized'],
    ["another project's keys, an unknown claim", 'p', qKey, { project_id: 'x' }, 'unauthorized'],
    ['shared keys, the other claim', 'shared', HS256, { aud: 'shared' }, 'wrong_project'],
    ['shared keys, the other claim and audience', 'shared', HS256, {}, 'wrong_project'],
    ["an unknown project, another's token", 'x', HS256, {}, 'unauthorized'],
  ])('%s', async (_, projectId, signing, claims, expected) => {
    const auth = authenticator(projects, drivenClock());
    const token = await sign(signing, claims);
    expect(await outcome(auth, token, projectId)).toBe(expected);
    expect(await outcome(auth, token, projectId)).toBe(expected);
  });

  it('a token remembered for one project opens no other', async () => {
    const auth = authenticator(projects, drivenClock());
    const token = await sign(HS256);
    expect(await outcome(auth, token)).toBe('ok');
    expect(await outcome(auth, token, 'q')).toBe('wrong_project');
    expect(await outcome(auth, token, 'x')).toBe('unauthorized');
    expect(auth.check('p', `Bearer ${token}`)).toBeUndefined();
  });

  it('keeps hundreds of them apart', async () => {
    const ids = Array.from({ length: 300 }, (_, number) => `p${number}`);
    const secretOf = (id: string): string => `the secret of ${id}`;
    const auth = authenticator(
      Object.fromEntries(ids.map(id => [id, { secret: secretOf(id) }])),
      drivenClock(),
    );
    const outcomes = await Promise.all(
      ids.map(async (id, number) => {
        const token = await sign({ alg: 'HS256', key: Buffer.from(secretOf(id)) }, { project_id: id });
        return [await outcome(auth, token, id), await outcome(auth, token, ids.at(number - 1))];
      }),
    );
    expect(outcomes).toEqual(ids.map(() => ['ok', 'wrong_project']));
  });
});

describe('the memory of verified tokens', () => {
  it('answers at once, for five minutes', async () => {
    const clock = drivenClock();
    const auth = authenticator({ p: { secret: SECRET } }, clock);
    const authorization = `Bearer ${await sign(HS256)}`;
    await auth.check('p', authorization);
    expect(auth.check('p', authorization)).toBeUndefined();
    clock.advance(299);
    expect(auth.check('p', authorization)).toBeUndefined();
    clock.advance(1);
    const again = auth.check('p', authorization);
    expect(again).toBeInstanceOf(Promise);
    await again;
    expect(auth.check('p', authorization)).toBeUndefined();
  });

  it('ends with the token, skew included', async () => {
    const clock = drivenClock();
    const auth = authenticator({ p: { secret: SECRET } }, clock);
    const authorization = `Bearer ${await sign(HS256, { exp: START + 10 })}`;
    await auth.check('p', authorization);
    clock.advance(14.999);
    expect(auth.check('p', authorization)).toBeUndefined();
    clock.advance(0.001);
    expect((await refusal(auth, authorization)).message).toBe('The token has expired');
  });

  it('does not outlive a clock that is set back', async () => {
    const clock = drivenClock();
    const auth = authenticator({ p: { secret: SECRET } }, clock);
    const undated = `Bearer ${await sign(HS256)}`;
    const dated = `Bearer ${await sign(HS256, { nbf: START + 4 })}`;
    await Promise.all([auth.check('p', undated), auth.check('p', dated)]);
    clock.advance(-1);
    expect([auth.check('p', undated), auth.check('p', dated)]).toEqual([undefined, undefined]);
    clock.advance(-0.001);
    expect((await refusal(auth, dated)).message).toBe('The token is not valid yet');
    clock.advance(-4);
    const again = auth.check('p', undated);
    expect(again).toBeInstanceOf(Promise);
    await again;
  });

  it('holds no refusals', async () => {
    const clock = drivenClock();
    const auth = authenticator({ p: { secret: SECRET } }, clock);
    const token = await sign(HS256, { nbf: START + 60 });
    expect(await outcome(auth, token)).toBe('unauthorized');
    clock.advance(55);
    expect(await outcome(auth, token)).toBe('ok');
  });

  it('leaves out tokens of more than 4 KiB, and padded ones', async () => {
    const auth = authenticator({ p: { secret: SECRET } }, drivenClock());
    const long = `Bearer ${await sign(HS256, { padding: 'x'.repeat(4096) })}`;
    const padded = `Bearer ${' '.repeat(4096)}${await sign(HS256)}`;
    for (const authorization of [long, padded]) {
      await auth.check('p', authorization);
      const again = auth.check('p', authorization);
      expect(again).toBeInstanceOf(Promise);
      await again;
    }
  });

  it('verifies a token once for all who bring it at the same time', async () => {
    const auth = authenticator({ p: { secret: SECRET }, q: { secret: SECRET } }, drivenClock());
    const token = await sign(HS256);
    const first = auth.check('p', `Bearer ${token}`);
    const second = auth.check('p', `bearer ${token}`);
    expect(second).toBe(first);
    expect((await refusal(auth, `Bearer ${token}`, 'q')).code).toBe('wrong_project');
    await first;
  });
});

describe('a JWKS', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  /** An issuer whose answer can be changed; counts what it was asked. */
  async function issuer(): Promise<{
    url: URL;
    fetches: () => number;
    answer: (listener: RequestListener) => void;
  }> {
    let fetches = 0;
    let current: RequestListener = (_, res) => void res.writeHead(500).end();
    const server = createServer((req, res) => {
      fetches++;
      current(req, res);
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    closing.push(async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    return {
      url: new URL(`http://127.0.0.1:${port}/keys.json`),
      fetches: () => fetches,
      answer: listener => {
        current = listener;
      },
    };
  }

  const serve =
    (...keys: object[]): RequestListener =>
    (_, res) =>
      void res.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }));
  const down: RequestListener = req => void req.socket.destroy();
  const member = (key: KeyObject, more: object = {}): object => ({
    ...key.export({ format: 'jwk' }),
    ...more,
  });

  const one: Signing = { alg: 'RS256', key: rsa.privateKey, kid: 'one' };
  const two: Signing = { alg: 'RS256', key: otherRsa.privateKey, kid: 'two' };
  const keyOne = member(rsa.publicKey, { kid: 'one' });
  const keyTwo = member(otherRsa.publicKey, { kid: 'two' });

  it('verifies RS256, ES256 and EdDSA by the kind of the key, whatever the token says', async () => {
    const { url, answer, fetches } = await issuer();
    answer(
      serve(
        keyOne,
        member(ec.publicKey, { kid: 'ec', alg: 'ES256' }),
        member(ed.publicKey, { kid: 'ed', use: 'sig' }),
        { kty: 'oct', kid: 'oct', k: base64url(SECRET), alg: 'HS256' },
        member(otherRsa.publicKey, { kid: 'enc', use: 'enc' }),
        member(otherRsa.publicKey, { kid: 'pss', alg: 'PS256' }),
        { kty: 'unheard-of', kid: 'new' },
      ),
    );
    const auth = authenticator({ p: { jwksUrl: url } }, drivenClock());
    const cases: [Signing, ProblemCode | 'ok'][] = [
      [one, 'ok'],
      [{ alg: 'ES256', key: ec.privateKey, kid: 'ec' }, 'ok'],
      [{ alg: 'EdDSA', key: ed.privateKey, kid: 'ed' }, 'ok'],
      [{ alg: 'EdDSA', key: ed.privateKey }, 'ok'],
      [{ ...HS256, kid: 'oct' }, 'unauthorized'],
      [{ alg: 'RS256', key: otherRsa.privateKey, kid: 'one' }, 'unauthorized'],
      [{ alg: 'RS256', key: rsa.privateKey, kid: 'ec' }, 'unauthorized'],
      [{ alg: 'RS512', key: rsa.privateKey, kid: 'one' }, 'unauthorized'],
      [{ alg: 'PS256', key: rsa.privateKey, kid: 'one' }, 'unauthorized'],
      [{ alg: 'PS256', key: otherRsa.privateKey, kid: 'pss' }, 'unauthorized'],
      [{ alg: 'RS256', key: otherRsa.privateKey, kid: 'pss' }, 'unauthorized'],
      [{ alg: 'RS256', key: otherRsa.privateKey, kid: 'enc' }, 'unauthorized'],
    ];
    for (const [signing, expected] of cases) {
      expect([signing.alg, signing.kid, await outcome(auth, await sign(signing))]).toEqual([
        signing.alg,
        signing.kid,
        expected,
      ]);
    }
    const text = pem(rsa.publicKey);
    expect(await outcome(auth, forged({ alg: 'HS256', kid: 'one' }, { project_id: 'p' }, text))).toBe(
      'unauthorized',
    );
    expect(fetches()).toBe(1);
  });

  it('may hold several keys for a token that names none', async () => {
    const { url, answer } = await issuer();
    answer(serve(keyOne, keyTwo));
    const auth = authenticator({ p: { jwksUrl: url } }, drivenClock());
    const third = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { kid: _, ...unnamed } = two;
    expect(await outcome(auth, await sign(unnamed))).toBe('ok');
    expect(await outcome(auth, await sign(unnamed, { exp: START - 60 }))).toBe('unauthorized');
    expect(await outcome(auth, await sign({ alg: 'RS256', key: third.privateKey }))).toBe('unauthorized');
  });

  it('is fetched again for an unknown key, at most once in the cooldown', async () => {
    const { url, answer, fetches } = await issuer();
    const clock = drivenClock();
    answer(serve(keyOne));
    const auth = authenticator({ p: { jwksUrl: url } }, clock);
    expect(await outcome(auth, await sign(one))).toBe('ok');
    answer(serve(keyOne, keyTwo));
    expect(await outcome(auth, await sign(two))).toBe('unauthorized');
    expect(fetches()).toBe(1);
    clock.advance(10);
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, n) => sign(two, { n })));
    expect(await Promise.all(tokens.map(token => outcome(auth, token)))).toEqual(tokens.map(() => 'ok'));
    expect(fetches()).toBe(2);
    clock.advance(10);
    for (let n = 0; n < 20; n++) await outcome(auth, await sign({ ...one, kid: `made-up-${n}` }));
    expect(fetches()).toBe(3);
  });

  it('stops vouching for a key that it dropped, once the set is old', async () => {
    const { url, answer } = await issuer();
    const clock = drivenClock();
    answer(serve(keyOne));
    const auth = authenticator({ p: { jwksUrl: url } }, clock);
    const token = await sign(one);
    expect(await outcome(auth, token)).toBe('ok');
    answer(serve(keyTwo));
    clock.advance(59);
    expect(auth.check('p', `Bearer ${token}`)).toBeUndefined();
    clock.advance(1);
    const again = auth.check('p', `Bearer ${token}`);
    expect(again).toBeInstanceOf(Promise);
    await again;
    clock.advance(240);
    expect(await outcome(auth, token)).toBe('unauthorized');
    expect(await outcome(auth, await sign(two))).toBe('ok');
  });

  it('that cannot be had is told as such, and had again after the cooldown', async () => {
    const { url, answer, fetches } = await issuer();
    const clock = drivenClock();
    answer(down);
    const auth = authenticator({ p: { jwksUrl: url } }, clock);
    const token = await sign(one);
    expect(await outcome(auth, token)).toBe('keys_unavailable');
    answer(serve(keyOne));
    expect(await outcome(auth, token)).toBe('keys_unavailable');
    expect(fetches()).toBe(1);
    clock.advance(10);
    expect(await outcome(auth, token)).toBe('ok');
  });

  it('goes on serving the keys that it knew through an outage, for an hour', async () => {
    const { url, answer } = await issuer();
    const clock = drivenClock();
    answer(serve(keyOne));
    const auth = authenticator({ p: { jwksUrl: url } }, clock);
    const [known, unknown, bad] = [await sign(one), await sign(two), await sign({ ...two, kid: 'one' })];
    expect(await outcome(auth, known)).toBe('ok');
    answer(down);
    clock.advance(400);
    expect(await outcome(auth, known)).toBe('ok');
    expect(await outcome(auth, unknown)).toBe('keys_unavailable');
    expect(await outcome(auth, bad)).toBe('unauthorized');
    clock.advance(3600);
    expect(await outcome(auth, known)).toBe('keys_unavailable');
    answer(serve(keyTwo));
    clock.advance(10);
    expect(await outcome(auth, known)).toBe('unauthorized');
    expect(await outcome(auth, unknown)).toBe('ok');
  });

  it.each<[string, RequestListener]>([
    ['an error', (_, res) => void res.writeHead(503).end(JSON.stringify({ keys: [keyOne] }))],
    [
      'a redirect',
      (req, res) =>
        void (req.url === '/keys.json'
          ? res.writeHead(302, { location: '/k' }).end()
          : serve(keyOne)(req, res)),
    ],
    ['no JSON', (_, res) => void res.end('<html>')],
    ['no set', (_, res) => void res.end('{"keys":{}}')],
    ['too much', (_, res) => void res.end(JSON.stringify({ keys: [keyOne], padding: 'x'.repeat(1 << 20) }))],
    [
      'half of it',
      (_, res) => void res.writeHead(200, { 'content-length': 999 }).write('{"keys":[', () => res.destroy()),
    ],
  ])('that is answered with %s cannot be had', async (_, listener) => {
    const { url, answer } = await issuer();
    answer(listener);
    const auth = authenticator({ p: { jwksUrl: url } }, drivenClock());
    expect(await outcome(auth, await sign(one))).toBe('keys_unavailable');
  });

  it('that does not come in time cannot be had', async () => {
    const { url, answer } = await issuer();
    const clock = drivenClock();
    const asked = new Promise<void>(resolve =>
      answer((_, res) => void res.write('{"keys":[', () => resolve())),
    );
    const auth = authenticator({ p: { jwksUrl: url } }, clock);
    const waiting = outcome(auth, await sign(one));
    await asked;
    for (const task of clock.waiting) task();
    expect(await waiting).toBe('keys_unavailable');
    expect(clock.waiting.size).toBe(0);
  });

  it("vouches for another project's token, and its outage makes no token good or bad elsewhere", async () => {
    const { url, answer } = await issuer();
    const clock = drivenClock();
    answer(serve(keyOne));
    const auth = authenticator({ p: { jwksUrl: url }, q: { secret: SECRET } }, clock);
    const token = await sign(one);
    expect(await outcome(auth, token, 'q')).toBe('wrong_project');
    answer(down);
    clock.advance(2 * 3600);
    expect(await outcome(auth, token, 'q')).toBe('unauthorized');
    expect(await outcome(auth, await sign(HS256, { project_id: 'q' }), 'q')).toBe('ok');
  });

  it('with a key that cannot be used refuses what names it', async () => {
    const { url, answer } = await issuer();
    const { n: _, ...broken } = keyOne as { n: string };
    answer(serve(broken, keyTwo));
    const auth = authenticator({ p: { jwksUrl: url } }, drivenClock());
    expect(await outcome(auth, await sign(one))).toBe('unauthorized');
    expect(await outcome(auth, await sign(two))).toBe('ok');
  });
});

it('reads the time of the system in earnest', async () => {
  const auth = authenticator({ p: { secret: SECRET } }, systemClock);
  const now = Math.floor(Date.now() / 1000);
  expect(await outcome(auth, await sign(HS256, { exp: now + 60 }))).toBe('ok');
  expect(await outcome(auth, await sign(HS256, { exp: now - 60 }))).toBe('unauthorized');
});
