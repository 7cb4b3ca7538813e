/**
 * What the HTTP parser refuses never becomes a request: it is answered on the bare socket, as a problem like
 * any other.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Problem, type ProblemCode } from '../errors.ts';

const CLIENT_ERRORS: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

export function refuseConnection(error: NodeJS.ErrnoException, duplex: Duplex, runId: string): void {
  const socket = duplex as Socket & { _httpMessage?: ServerResponse };
  const current = socket._httpMessage;
  // While another answer is due, or under way, this one would be taken for it.
  if (!socket.writable || current?.req.complete || current?.headersSent) {
    socket.destroy();
    return;
  }
  const problem = new Problem(CLIENT_ERRORS[error.code ?? ''] ?? 'bad_request');
  const body = problem.body(runId);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${runId}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
