import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../src/clock.ts';
import { issueToken } from '../src/token.ts';

const NOW = 1_750_000_000;
const clock = { ...systemClock, now: () => NOW * 1000 + 999 };
const request = { secret: 'ein Geheimnis, länger', projectId: 'p-demo', ttlSeconds: 90, clock };

describe('issueToken', () => {
  it('dates the token by the clock and names the project', async () => {
    const token = await issueToken(request);
    expect(decodeProtectedHeader(token)).toEqual({ alg: 'HS256', typ: 'JWT' });
    expect(decodeJwt(token)).toEqual({ project_id: 'p-demo', iat: NOW, exp: NOW + 90 });
  });

  it('signs with the UTF-8 bytes of the secret', async () => {
    const token = await issueToken(request);
    const options = { currentDate: new Date(NOW * 1000) };
    await expect(jwtVerify(token, new TextEncoder().encode(request.secret), options)).resolves.toBeDefined();
    await expect(jwtVerify(token, new TextEncoder().encode('another secret'), options)).rejects.toThrow(
      'signature',
    );
  });

  it('carries the issuer and the audience where the project asks for them', async () => {
    const token = await issueToken({ ...request, issuer: 'https://issuer.example', audience: 'calls' });
    expect(decodeJwt(token)).toMatchObject({ iss: 'https://issuer.example', aud: 'calls' });
  });
});
