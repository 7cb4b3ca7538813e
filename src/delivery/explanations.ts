/**
 * What each error code of an attempt means, and what whoever looks after the delivery can do about it: one
 * sentence each, for people.
 */
import type { AttemptErrorCode } from './outcome.ts';

export interface Explanation {
  readonly meaning: string;
  readonly advice: string;
}

const EXPLANATIONS: Readonly<Record<AttemptErrorCode, Explanation>> = {
  timeout: {
    meaning: 'The receiver sent no status before the deadline of the attempt.',
    advice: 'Have the receiver answer first and work afterwards, or raise webhooks.attemptTimeout.',
  },
  connection_refused: {
    meaning: 'Nobody listens at the port of the target.',
    advice: 'Start the receiver, or check the port in the target, and then redeliver.',
  },
  connection_reset: {
    meaning: 'The connection was reset before an answer came.',
    advice:
      'Look into the log of the receiver, or of the proxy before it, for a crash or a limit at that time.',
  },
  connection_closed: {
    meaning: 'The receiver closed the connection without an answer.',
    advice:
      'Check that the target speaks HTTP at this port, and that the receiver does not end while it works.',
  },
  dns_not_found: {
    meaning: 'The host name of the target has no address.',
    advice: 'Check the spelling of the target, and that its DNS record is there, and then redeliver.',
  },
  dns_failed: {
    meaning: 'The name of the target could not be looked up.',
    advice: 'Check the DNS resolver of the machine that this service runs on.',
  },
  host_unreachable: {
    meaning: 'There is no way to the host of the target.',
    advice: 'Check that the host is up, and the routes and firewalls on the way to it.',
  },
  network_unreachable: {
    meaning: 'There is no way to the network of the target.',
    advice: 'Check the network of the machine that this service runs on, IPv6 in particular.',
  },
  tls_invalid: {
    meaning: 'The certificate of the receiver is not valid for the target.',
    advice: 'Renew the certificate, send its whole chain, or use the name that it was made for.',
  },
  tls_failed: {
    meaning: 'The TLS handshake with the receiver failed.',
    advice: 'Check that the port speaks TLS, and which versions and ciphers the receiver accepts.',
  },
  blocked_target: {
    meaning: 'The target is at an address that deliveries may not go to.',
    advice: 'Use a public address, or have the operator open this one in webhooks.allowTargets.',
  },
  invalid_answer: {
    meaning: 'What came back was not an HTTP answer, or had no end.',
    advice: 'Check that the target is an HTTP server and not another service at the same port.',
  },
  request_failed: {
    meaning: 'The request could not be made.',
    advice: 'Redeliver to a target that is spelled plainly, and report the delivery if that fails too.',
  },
  body_missing: {
    meaning: 'The stored body of the delivery is damaged or gone.',
    advice: 'Restore the data directory or the database from a backup, or repeat the call.',
  },
  secret_unreadable: {
    meaning: 'The stored secret cannot be opened, so the delivery cannot be signed as it was asked for.',
    advice: 'Add the encryption key that it was sealed with to the configuration, and then redeliver.',
  },
  interrupted: {
    meaning: 'The service ended during the attempt, so nobody knows what the receiver made of it.',
    advice: 'Nothing needs to be done while attempts are left; a receiver should know a run id it has seen.',
  },
  cancelled: {
    meaning: 'The delivery was cancelled by hand during the attempt.',
    advice: 'Redeliver it if it is wanted after all.',
  },
  other: {
    meaning: 'The attempt failed in a way that has no code of its own.',
    advice: 'Look for the run id in the log at level debug, where the cause is told.',
  },
};

/** Of a code that an older or newer version has written, what is said of any other. */
export function explain(code: string): Explanation {
  return Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code as AttemptErrorCode] : EXPLANATIONS.other;
}
