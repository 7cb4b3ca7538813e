/**
 * What an operator does with a running service, whatever it is made of: finds a delivery that has failed, reads
 * it, sends it again, sees that live; many at once; elsewhere; and ends one.
 */
import { expect, onTestFinished } from 'vitest';
import type { z } from '@hono/zod-openapi';
import type { AppList } from '../../src/api/app-routes.ts';
import type { DeliveryDetail, DeliveryList, Job } from '../../src/api/delivery-contract.ts';
import { callRaw } from '../support/caller.ts';
import { openInbox, signatureOf } from '../support/inbox.ts';
import { PROJECT } from '../support/service.ts';
import { until } from '../support/waiting.ts';

const SECRET = 's3cret-of-the-call';

export interface Running {
  /** Of the listener of the calls. */
  readonly port: number;
  /** `http://127.0.0.1:port` of both listeners. */
  readonly base: string;
  readonly admin: string;
  readonly token: string;
}

type Detail = z.output<typeof DeliveryDetail>;

/** There is an app `app` that answers anything. */
export async function steer({ port, base, admin, token }: Running): Promise<void> {
  let status = 500;
  const inbox = await openInbox(() => status);
  const elsewhere = await openInbox();
  onTestFinished(async () => {
    await Promise.all([inbox.close(), elsewhere.close()]);
  });
  const { host } = new URL(inbox.url);
  const project = `${base}/v4/${PROJECT}`;
  const authorization = { authorization: `Bearer ${token}` };

  const ask = async <T>(url: string, init: RequestInit = {}): Promise<T> => {
    const headers = url.startsWith(base) ? authorization : {};
    const answer = await fetch(url, { ...init, headers });
    const json = await answer.json();
    expect([url, answer.status, json]).toEqual([url, expect.toBeOneOf([200, 202]), json]);
    return json as T;
  };
  const post = <T>(url: string, body?: object): Promise<T> =>
    ask<T>(url, { method: 'POST', ...(body && { body: JSON.stringify(body) }) });
  const one = (runId: string): Promise<Detail> => ask(`${admin}/api/v1/deliveries/${runId}`);
  const settles = async (runId: string, state: Detail['state'], round: number): Promise<Detail> => {
    await until(async () => {
      const found = await one(runId);
      return found.state === state && found.round === round;
    });
    return one(runId);
  };
  const call = async (): Promise<string> => {
    const target = inbox.url.replace('//', '//user:pass@');
    const path = `/v4/${PROJECT}/app/?webhookEndpoint=${encodeURIComponent(target)}`;
    const headers = [`Authorization: Bearer ${token}`, `X-Webhook-Secret: ${SECRET}`];
    return (await callRaw({ port, path, headers })).header('x-request-id')!;
  };

  const runId = await call();
  const failed = await settles(runId, 'failed', 1);
  expect(failed).toMatchObject({ reason: 'rejected', attempts: [{ status: 500, trigger: 'automatic' }] });
  expect(failed.request).toMatchObject({ signed: true, body: { run_id: runId } });
  expect(JSON.stringify(failed)).not.toMatch(/s3cret|pass|dXNlcjpwYXNz/);
  const found = await ask<z.output<typeof DeliveryList>>(
    `${project}/_deliveries?state=failed&status=5xx&host=${encodeURIComponent(host)}&since=1h`,
  );
  expect(found.deliveries.map(each => each.run_id)).toEqual([runId]);

  // Seen live, from both listeners.
  const leaving = new AbortController();
  const seen: Promise<void>[] = [];
  for (const url of [`${admin}/api/v1/deliveries/stream`, `${project}/_deliveries/stream`]) {
    const headers = url.startsWith(base) ? authorization : {};
    const stream = await fetch(`${url}?state=delivered`, { headers, signal: leaving.signal });
    seen.push(readUntil(stream, `"run_id":"${runId}"`));
  }
  status = 200;
  expect(await post(`${admin}/api/v1/deliveries/${runId}/redeliver`)).toMatchObject({ round: 2 });
  await Promise.all(seen);
  leaving.abort();
  const delivered = await settles(runId, 'delivered', 2);
  expect(delivered.attempts.at(-1)).toMatchObject({ round: 2, number: 1, trigger: 'manual', status: 200 });

  // Elsewhere: signed with the same secret, without the credentials of the other.
  await post(`${project}/_deliveries/${runId}/redeliver`, { target: elsewhere.url });
  const received = await elsewhere.of(runId);
  expect(received.headers['x-service-webhook-signature']).toBe(signatureOf(received, SECRET));
  expect(received.headers).not.toHaveProperty('authorization');
  expect(await settles(runId, 'delivered', 3)).toMatchObject({
    target: elsewhere.url,
    own_target: inbox.url,
  });

  // Many at once.
  status = 500;
  const many = await Promise.all(Array.from({ length: 5 }, call));
  await Promise.all(many.map(each => settles(each, 'failed', 1)));
  status = 200;
  const filter = { state: 'failed', project: PROJECT };
  expect(await post(`${admin}/api/v1/deliveries/redeliver`, { filter, dryRun: true })).toEqual({
    matching: 5,
    exact: true,
  });
  const { job_id: id } = await post<{ job_id: string }>(`${admin}/api/v1/deliveries/redeliver`, { filter });
  const job = (): Promise<z.output<typeof Job>> => ask(`${admin}/api/v1/deliveries/redeliver/${id}`);
  await until(async () => (await job()).state === 'done');
  expect(await job()).toMatchObject({ total: 5, seen: 5, redelivered: 5 });
  await Promise.all(many.map(each => settles(each, 'delivered', 2)));

  // Ended by hand, while it waits for its next attempt.
  status = 404;
  const retried = await call();
  await until(async () => (await one(retried)).attempt_count > 0);
  expect(await post(`${admin}/api/v1/deliveries/${retried}/cancel`)).toMatchObject({ state: 'cancelled' });

  for (const url of [`${admin}/api/v1/apps`, `${project}/_apps`]) {
    const { apps } = await ask<z.output<typeof AppList>>(url);
    expect(apps).toMatchObject([{ app: 'app', state: 'elsewhere' }]);
  }
}

async function readUntil(answer: Response, wanted: string): Promise<void> {
  let text = '';
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes(wanted)) return;
  }
  throw new Error(`it ended without ${wanted}`);
}
