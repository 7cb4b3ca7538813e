/**
 * A certificate that signs itself, for tests of TLS.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Certificate {
  /** PEM. */
  readonly key: string;
  readonly cert: string;
}

/** For `name` and 127.0.0.1; its files are left in `directory` as `key.pem` and `cert.pem`. */
export function makeCertificate(directory: string, name: string): Certificate {
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const subject = ['-subj', `/CN=${name}`];
  const names = ['-addext', `subjectAltName=DNS:${name},IP:127.0.0.1`];
  const files = ['-keyout', key, '-out', cert];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  try {
    execFileSync('openssl', ['req', '-x509', ...kind, ...subject, ...names, ...files], { stdio: 'pipe' });
  } catch (cause) {
    throw new Error('the TLS tests need the openssl command to make a certificate', { cause });
  }
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}
