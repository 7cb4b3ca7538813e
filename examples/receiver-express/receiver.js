/** A receiver on Express: `express.raw` keeps the bytes that were signed. */
import { VerificationError, verifyDelivery } from 'afterword/verify';
import express from 'express';

const secret = process.env.WEBHOOK_SECRET ?? 'demo-webhook-secret';
const app = express();

app.post('/', express.raw({ type: 'application/json', limit: '24mb' }), async (request, response) => {
  try {
    const delivery = await verifyDelivery({ headers: request.headers, body: request.body, secret });
    const { app, status_code: status, result, error } = delivery.json();
    console.log(delivery.requestId, app, status, JSON.stringify(error ?? result));
    response.sendStatus(204);
  } catch (error) {
    response.sendStatus(error instanceof VerificationError ? 401 : 500);
  }
});

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`receiving on http://127.0.0.1:${server.address().port}/`);
});
