/** Percent-decoding alone: `+` stays, as in a path (RFC 3986, 2.1). */

/** Of an ASCII string, to strict UTF-8; undefined where it is malformed. */
export function percentDecode(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}
