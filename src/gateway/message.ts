/**
 * What of a request's framing Node lets pass and a proxy must not: whatever caller and app could read
 * differently. Answers with what the rest of the gateway needs of the headers.
 */
import type { IncomingMessage } from 'node:http';
import { Problem } from '../errors.ts';

export interface MessageHead {
  readonly authorization: string | undefined;
  /** `Expect: 100-continue`. */
  readonly expectsContinue: boolean;
  /** The declared length; undefined where the body is chunked. */
  readonly length: number | undefined;
}

export function readMessage(req: IncomingMessage): MessageHead {
  const { rawHeaders } = req;
  let hosts = 0;
  let authorization: string | undefined;
  let expectsContinue = false;
  let length: number | undefined = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const value = rawHeaders[i + 1]!;
    switch (rawHeaders[i]!.toLowerCase()) {
      case 'host':
        hosts++;
        break;
      case 'authorization':
        // Two make no valid header, and so no valid token.
        authorization = authorization === undefined ? value : `${authorization}, ${value}`;
        break;
      case 'transfer-encoding':
        checkTransferEncoding(req, value, length);
        length = undefined;
        break;
      case 'content-length':
        if (length !== undefined) length = Number(value);
        break;
      case 'expect':
        if (value.toLowerCase() !== '100-continue') throw new Problem('expectation_failed');
        expectsContinue = req.httpVersionMinor > 0;
        break;
    }
  }
  if (hosts > 1) throw new Problem('bad_request', 'The request has more than one Host header');
  if (hosts === 0 && req.httpVersionMinor > 0) throw new Problem('bad_request', 'The request has no Host');
  return { authorization, expectsContinue, length };
}

/** RFC 9112, section 6.1: chunked alone, once, and never in HTTP/1.0. */
function checkTransferEncoding(req: IncomingMessage, value: string, length: number | undefined): void {
  if (value.toLowerCase() !== 'chunked' || length === undefined) {
    throw new Problem('bad_request', 'The only Transfer-Encoding accepted is chunked, given once');
  }
  if (req.httpVersionMinor === 0) {
    throw new Problem('bad_request', 'HTTP/1.0 has no Transfer-Encoding');
  }
}
