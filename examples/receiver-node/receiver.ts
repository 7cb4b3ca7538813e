/**
 * A receiver without a framework: verifies, remembers what it has seen, prints, answers.
 * In a project of your own, import from 'afterword/verify'.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { VerificationError, verifyDelivery } from '../../src/verify.ts';

const secret = process.env['WEBHOOK_SECRET'] ?? 'demo-webhook-secret';
/** A real receiver keeps these in its database, in one transaction with the work. */
const seen = new Set<string>();

/** The status to answer with. */
async function receive(request: IncomingMessage): Promise<number> {
  try {
    const delivery = await verifyDelivery({ headers: request.headers, body: await buffer(request), secret });
    const { app, status_code: status, result, error } = delivery.json();
    const what = seen.has(delivery.requestId) ? 'again' : 'new';
    seen.add(delivery.requestId);
    console.log(delivery.requestId, what, app, status, JSON.stringify(error ?? result));
    return 204;
  } catch (error) {
    if (!(error instanceof VerificationError)) throw error;
    console.log('refused:', error.reason);
    return 401;
  }
}

const server = createServer((request, response) => {
  receive(request).then(
    status => response.writeHead(status).end(),
    error => {
      console.error(error);
      response.destroy(); // no answer, so that the delivery comes again
    },
  );
});

server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`receiving on http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
});
