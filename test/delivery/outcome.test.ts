import { errors } from 'undici';
import { describe, expect, it } from 'vitest';
import { ATTEMPT_ERRORS, AttemptFault, errorCode, judgeOutcome } from '../../src/delivery/outcome.ts';

describe('judgeOutcome', () => {
  it.each([
    [200, 'delivered'],
    [201, 'delivered'],
    [204, 'delivered'],
    [299, 'delivered'],
    [300, 'retry'],
    [301, 'retry'],
    [304, 'retry'],
    [399, 'retry'],
    [400, 'rejected'],
    [401, 'rejected'],
    [403, 'rejected'],
    [404, 'retry'],
    [405, 'rejected'],
    [408, 'rejected'],
    [410, 'rejected'],
    [429, 'rejected'],
    [499, 'rejected'],
    [500, 'rejected'],
    [502, 'rejected'],
    [503, 'rejected'],
    [504, 'rejected'],
    [599, 'rejected'],
    [600, 'retry'],
    [999, 'retry'],
  ] as const)('%i is %s', (status, verdict) => {
    expect(judgeOutcome({ status })).toBe(verdict);
  });

  it('retries every error but a blocked target', () => {
    const retried = ATTEMPT_ERRORS.filter(error => judgeOutcome({ error }) === 'retry');
    expect(retried).toEqual(ATTEMPT_ERRORS.filter(error => error !== 'blocked_target'));
    expect(judgeOutcome({ error: 'blocked_target' })).toBe('blocked');
  });

  it('goes by the status where there is an error besides', () => {
    expect(judgeOutcome({ status: 200, error: 'timeout' })).toBe('delivered');
    expect(judgeOutcome({ status: 500, error: 'blocked_target' })).toBe('rejected');
  });
});

describe('errorCode', () => {
  const system = (code: string, syscall = 'connect') => Object.assign(new Error(code), { code, syscall });

  it.each([
    [system('ETIMEDOUT'), 'timeout'],
    [system('ECONNREFUSED'), 'connection_refused'],
    [system('ECONNRESET', 'read'), 'connection_reset'],
    [system('EPIPE', 'write'), 'connection_reset'],
    [new errors.SocketError('other side closed'), 'connection_closed'],
    [new errors.SocketError('closed'), 'connection_closed'],
    [system('ENOTFOUND', 'getaddrinfo'), 'dns_not_found'],
    [system('EAI_AGAIN', 'getaddrinfo'), 'dns_failed'],
    [system('ESERVFAIL', 'getaddrinfo'), 'dns_failed'],
    [system('EHOSTUNREACH'), 'host_unreachable'],
    [system('ENETUNREACH'), 'network_unreachable'],
    [system('DEPTH_ZERO_SELF_SIGNED_CERT'), 'tls_invalid'],
    [system('CERT_HAS_EXPIRED'), 'tls_invalid'],
    [system('ERR_TLS_CERT_ALTNAME_INVALID'), 'tls_invalid'],
    [system('ERR_SSL_WRONG_VERSION_NUMBER'), 'tls_failed'],
    [system('EPROTO', 'write'), 'tls_failed'],
    [new errors.SocketError('bad response'), 'invalid_answer'],
    [new errors.HTTPParserError('no'), 'invalid_answer'],
    [new errors.HeadersOverflowError(), 'invalid_answer'],
    [new errors.InvalidArgumentError('invalid header'), 'request_failed'],
    [new errors.RequestContentLengthMismatchError(), 'body_missing'],
    [new errors.ClientDestroyedError(), 'interrupted'],
    [new AttemptFault('blocked_target', 'no'), 'blocked_target'],
    [system('EMFILE', 'open'), 'other'],
    [new TypeError('a bug'), 'other'],
    ['not even an error', 'other'],
    [undefined, 'other'],
  ] as const)('maps %s to %s', (error, code) => {
    expect(errorCode(error)).toBe(code);
  });

  it('names an unparsable target', () => {
    expect(errorCode(caught(() => new URL('http://')))).toBe('request_failed');
  });
});

function caught(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    return error;
  }
}
