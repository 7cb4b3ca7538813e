/**
 * What an attempt came to, and what follows from it: the closed set of typed error codes, the table that
 * maps errors of Node, OpenSSL and undici onto it, and the verdict by the receiver's answer.
 */

export const ATTEMPT_ERRORS = [
  'timeout',
  'connection_refused',
  'connection_reset',
  'connection_closed',
  'dns_not_found',
  'dns_failed',
  'host_unreachable',
  'network_unreachable',
  'tls_invalid',
  'tls_failed',
  'blocked_target',
  'invalid_answer',
  'request_failed',
  'body_missing',
  'secret_unreadable',
  'interrupted',
  'cancelled',
  'other',
] as const;

export type AttemptErrorCode = (typeof ATTEMPT_ERRORS)[number];

/** An error of our own making that knows its code. */
export class AttemptFault extends Error {
  override readonly name = 'AttemptFault';
  readonly fault: AttemptErrorCode;

  constructor(fault: AttemptErrorCode, message: string) {
    super(message);
    this.fault = fault;
  }
}

const CODES: Readonly<Record<string, AttemptErrorCode>> = {
  ETIMEDOUT: 'timeout',
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  ECONNABORTED: 'connection_reset',
  EPIPE: 'connection_reset',
  ENOTFOUND: 'dns_not_found',
  ENODATA: 'dns_not_found',
  EHOSTUNREACH: 'host_unreachable',
  EHOSTDOWN: 'host_unreachable',
  ENETUNREACH: 'network_unreachable',
  ENETDOWN: 'network_unreachable',
  EADDRNOTAVAIL: 'network_unreachable',
  EAFNOSUPPORT: 'network_unreachable',
  EPROTO: 'tls_failed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_invalid',
  ERR_TLS_CERT_ALTNAME_FORMAT: 'tls_invalid',
  ERR_INVALID_URL: 'request_failed',
  UND_ERR_INVALID_ARG: 'request_failed',
  UND_ERR_HEADERS_OVERFLOW: 'invalid_answer',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'invalid_answer',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'body_missing',
  UND_ERR_DESTROYED: 'interrupted',
  UND_ERR_CLOSED: 'interrupted',
};

/** Families of codes, by how they begin. */
const PREFIXES: ReadonlyArray<readonly [string, AttemptErrorCode]> = [
  ['EAI_', 'dns_failed'],
  ['ERR_SSL_', 'tls_failed'],
  ['ERR_TLS_', 'tls_failed'],
];

/** Results of a certificate's verification, as Node names OpenSSL's X509_V_ERR_*. */
const CERTIFICATE = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_CRL',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'UNABLE_TO_DECRYPT_CRL_SIGNATURE',
  'UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY',
  'CERT_SIGNATURE_FAILURE',
  'CRL_SIGNATURE_FAILURE',
  'CERT_NOT_YET_VALID',
  'CERT_HAS_EXPIRED',
  'CRL_NOT_YET_VALID',
  'CRL_HAS_EXPIRED',
  'ERROR_IN_CERT_NOT_BEFORE_FIELD',
  'ERROR_IN_CERT_NOT_AFTER_FIELD',
  'ERROR_IN_CRL_LAST_UPDATE_FIELD',
  'ERROR_IN_CRL_NEXT_UPDATE_FIELD',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_CHAIN_TOO_LONG',
  'CERT_REVOKED',
  'INVALID_CA',
  'PATH_LENGTH_EXCEEDED',
  'INVALID_PURPOSE',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'HOSTNAME_MISMATCH',
  'UNSPECIFIED',
]);

export function errorCode(error: unknown): AttemptErrorCode {
  if (error instanceof AttemptFault) return error.fault;
  if (!(error instanceof Error)) return 'other';
  // undici leaves the code of its parser's errors unset.
  if (error.name === 'HTTPParserError') return 'invalid_answer';
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string') return 'other';
  if (code === 'UND_ERR_SOCKET') return socketFault(error.message);
  const known = CODES[code] ?? PREFIXES.find(([prefix]) => code.startsWith(prefix))?.[1];
  if (known !== undefined) return known;
  if (CERTIFICATE.has(code)) return 'tls_invalid';
  return syscall === 'getaddrinfo' ? 'dns_failed' : 'other';
}

/** undici has one code for a connection that ended and for an answer that makes no sense. */
function socketFault(message: string): AttemptErrorCode {
  return message.startsWith('bad ') ? 'invalid_answer' : 'connection_closed';
}

export type Verdict = 'delivered' | 'retry' | 'rejected' | 'blocked';

export interface Result {
  /** The receiver's status. Once it has arrived it decides, whatever became of the rest of the answer. */
  readonly status?: number;
  readonly error?: AttemptErrorCode;
}

export function judgeOutcome({ status, error }: Result): Verdict {
  if (status === undefined) return error === 'blocked_target' ? 'blocked' : 'retry';
  if (status >= 200 && status < 300) return 'delivered';
  if (status === 404) return 'retry';
  return status >= 400 && status < 600 ? 'rejected' : 'retry';
}
