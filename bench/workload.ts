/**
 * What the bench sends and expects, the same bytes for every server: a request with the headers of a usual
 * client, and a JSON answer of a given size.
 */

export const PROJECT = 'p-bench';
export const APP = 'app';
export const WEBHOOK_SECRET = 'the secret that the deliveries are signed with';
/** Of a POST. */
export const REQUEST_BYTES = 200;

export type Method = 'GET' | 'POST';

export interface RequestOptions {
  readonly method: Method;
  /** Bytes of the answer. */
  readonly size: number;
  readonly token: string;
  /** Asks for a delivery there. */
  readonly target?: string | undefined;
  /** Of the caller's trace. */
  readonly traceparent?: string;
}

/** The whole request as it goes over the wire. */
export function requestOf({ method, size, token, target, traceparent }: RequestOptions): string {
  const query = target === undefined ? '' : `?webhookEndpoint=${encodeURIComponent(target)}`;
  const head = [
    `${method} /v4/${PROJECT}/${APP}/${size}${query} HTTP/1.1`,
    'Host: calls.example',
    'User-Agent: bench',
    'Accept: */*',
    'Accept-Encoding: identity',
    `Authorization: Bearer ${token}`,
  ];
  if (target !== undefined) head.push(`X-Webhook-Secret: ${WEBHOOK_SECRET}`);
  if (traceparent !== undefined) head.push(`traceparent: ${traceparent}`);
  if (method === 'GET') return `${head.join('\r\n')}\r\n\r\n`;
  head.push('Content-Type: application/json', `Content-Length: ${REQUEST_BYTES}`);
  return `${head.join('\r\n')}\r\n\r\n${jsonOf(REQUEST_BYTES)}`;
}

/** The size of the answer that a request's path asks for. */
export function sizeAsked(path: string): number {
  const end = path.indexOf('?');
  return Number(
    path.slice(path.lastIndexOf('/', end === -1 ? undefined : end) + 1, end === -1 ? undefined : end),
  );
}

const answers = new Map<number, Buffer>();

export function answerOf(size: number): Buffer {
  let answer = answers.get(size);
  if (answer === undefined) {
    answer = Buffer.from(jsonOf(size));
    answers.set(size, answer);
  }
  return answer;
}

/** JSON of exactly so many bytes, with the mix of keys, numbers and strings that answers have. */
function jsonOf(size: number): string {
  const items: string[] = [];
  const text = (fill: string): string => `{"items":[${items.join(',')}],"fill":"${fill}"}`;
  for (let id = 1, length = text('').length; ; id++) {
    const item = JSON.stringify({
      id,
      name: `item ${id}`,
      price: id * 1.25,
      tags: ['a', 'b'],
      sold: id % 2 === 0,
    });
    length += item.length + 1;
    if (length > size) break;
    items.push(item);
  }
  return text('.'.repeat(size - text('').length));
}
