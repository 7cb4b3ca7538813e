/**
 * Receivers that verify what they are sent, each a whole program to start from: no dependencies, and the secret
 * comes from the environment.
 */

export type SnippetName = keyof typeof SNIPPETS;

export const SNIPPETS = {
  Node: String.raw`// WEBHOOK_SECRET=... node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';

const secret = process.env.WEBHOOK_SECRET; // what the caller sent as X-Webhook-Secret
if (!secret) throw new Error('WEBHOOK_SECRET is not set');

function isGenuine(headers, body) {
  const head = headers['x-request-id'] + '.' + headers['x-service-webhook-timestamp'] + '.';
  const digest = createHmac('sha256', secret).update(head).update(body).digest('hex');
  const expected = Buffer.from('v1,' + digest);
  const received = Buffer.from(headers['x-service-webhook-signature'] ?? '');
  return received.length === expected.length && timingSafeEqual(received, expected);
}

const server = createServer(async (request, response) => {
  const body = await buffer(request).catch(() => undefined); // the bytes as they came
  if (body === undefined) return;
  const genuine = isGenuine(request.headers, body);
  if (genuine) console.log(JSON.parse(body));
  response.writeHead(genuine ? 204 : 401).end();
});

server.listen(process.env.PORT ?? 3000, () => console.log('listening on', server.address().port));
`,
  Python: String.raw`# WEBHOOK_SECRET=... python3 receiver.py
import hashlib
import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

secret = os.fsencode(os.environ["WEBHOOK_SECRET"])  # what the caller sent as X-Webhook-Secret
if not secret:
    raise SystemExit("WEBHOOK_SECRET is empty")


def is_genuine(headers, body):
    head = f"{headers['X-Request-Id']}.{headers['X-Service-Webhook-Timestamp']}."
    expected = "v1," + hmac.new(secret, head.encode() + body, hashlib.sha256).hexdigest()
    received = headers.get("X-Service-Webhook-Signature", "")
    return hmac.compare_digest(expected.encode(), received.encode())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))  # the bytes as they came
        genuine = is_genuine(self.headers, body)
        if genuine:
            print(json.loads(body), flush=True)
        self.send_response(204 if genuine else 401)
        self.end_headers()


server = ThreadingHTTPServer(("", int(os.environ.get("PORT", "3000"))), Receiver)
print("listening on", server.server_port, flush=True)
server.serve_forever()
`,
} as const;
