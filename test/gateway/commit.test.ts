/**
 * The one thing that waits (contract, section 2): the very end of an answer, until its delivery is stored,
 * and no longer than `commitWait`.
 */
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Conversation } from '../support/conversation.ts';
import { until } from '../support/waiting.ts';
import { openRig, type Rig } from './rig.ts';

let patient: Rig;
let hasty: Rig;

beforeAll(async () => {
  patient = await openRig({ commitWait: 60_000 });
  hasty = await openRig({ commitWait: 30 });
});
afterAll(() => Promise.all([patient.stop(), hasty.stop()]));

/** A store that takes a delivery only when told. */
function heldStore(rig: Rig): { commit: () => void; asked: () => Promise<void> } {
  const before = rig.deliveries.accepted.length;
  const { promise, resolve } = Promise.withResolvers<void>();
  rig.deliveries.accept = () => promise;
  return { commit: resolve, asked: () => until(() => rig.deliveries.accepted.length > before) };
}

interface Shape {
  readonly what: string;
  readonly app?: 'custom' | 'cortex';
  readonly method?: string;
  readonly answer: (res: ServerResponse, caller: Conversation) => unknown;
  /** What the caller has before the commit; a regular expression for all of it. */
  readonly before: RegExp;
  readonly end: RegExp;
}

const SHAPES: Shape[] = [
  {
    what: 'of declared length, all but its last piece',
    async answer(res, caller) {
      res.writeHead(200, { 'Content-Length': 10 }).write('12345');
      await caller.until('\r\n\r\n12345');
      res.end('67890');
    },
    before: /\r\n\r\n12345$/,
    end: /\r\n\r\n1234567890$/,
  },
  {
    what: 'in chunks, all but the last chunk',
    answer: res => {
      res.write('one');
      res.end('two');
    },
    before: /\r\n\r\n[0-9a-f]+\r\none[^]*two\r\n$/,
    end: /two\r\n0\r\n\r\n$/,
  },
  {
    what: 'to HEAD, nothing, since its head is its end',
    method: 'HEAD',
    answer: res => res.writeHead(200, { 'Content-Length': 10 }).end(),
    before: /^$/,
    end: /^HTTP\/1\.1 200 OK[^]*\r\n\r\n$/,
  },
  {
    what: 'without a body (204), nothing',
    answer: res => res.writeHead(204).end(),
    before: /^$/,
    end: /^HTTP\/1\.1 204 No Content[^]*\r\n\r\n$/,
  },
  {
    what: 'of length 0, nothing',
    answer: res => res.writeHead(200, { 'Content-Length': 0 }).end(),
    before: /^$/,
    end: /^HTTP\/1\.1 200 OK[^]*\r\n\r\n$/,
  },
  {
    what: 'of a function, nothing of a small one',
    app: 'cortex',
    method: 'POST',
    answer: res => res.end('{"a":1}'),
    before: /^$/,
    end: /"result":\{"a":1\},"run_time_ms":[\d.]+,"timestamp":"[^"]+"\}$/,
  },
  {
    what: 'of a function, all but the end of a large one',
    app: 'cortex',
    method: 'POST',
    answer: res => res.end(`["${'x'.repeat(300_000)}"]`),
    before: /xxx"\]\r\n$/,
    end: /"\]\r\n[0-9a-f]+\r\n,"run_time_ms":[\d.]+,"timestamp":"[^"]+"\}\r\n0\r\n\r\n$/,
  },
];

describe.each(SHAPES)('an answer $what', ({ app = 'custom', method = 'GET', answer, before, end }) => {
  it('arrives before the delivery is stored, and the end after', async () => {
    const caller = await patient.converse();
    const path = patient.app.play((req, res) => {
      req.resume();
      answer(res, caller);
    });
    const { commit, asked } = heldStore(patient);
    caller.send(patient.head({ app, path, method, hook: true }));
    await asked();
    await until(() => before.test(caller.text));
    commit();
    expect(await caller.until(end)).toMatch(/^HTTP\/1\.1 20[04] /);
    caller.close();
  });

  it('ends after commitWait, though the delivery is not stored yet', async () => {
    const caller = await hasty.converse();
    const path = hasty.app.play((req, res) => {
      req.resume();
      answer(res, caller);
    });
    const { commit, asked } = heldStore(hasty);
    const late = hasty.lateCommits();
    caller.send(hasty.head({ app, path, method, hook: true }));
    await asked();
    await caller.until(end);
    expect(hasty.lateCommits()).toBe(late + 1);
    commit();
    caller.close();
  });
});

describe('a commit', () => {
  it('that fails is logged, and the caller has its answer all the same', async () => {
    const path = patient.app.play((_req, res) => res.end('fine'));
    patient.deliveries.accept = () => Promise.reject(new Error('the disk is gone'));
    const answer = await patient.call({ path, hook: true });
    expect(answer.body.toString()).toBe('fine');
    expect(patient.logs()).toMatch(/"run_id":"[^"]+"[^\n]*the disk is gone/);
  });

  it('keeps the 502 of an app that cannot be reached waiting too', async () => {
    const { commit, asked } = heldStore(patient);
    const caller = await patient.converse();
    caller.send(patient.head({ app: 'nowhere', path: 'x', hook: true }));
    await asked();
    expect(caller.text).toBe('');
    commit();
    await caller.until('app_unreachable');
    caller.close();
  });

  it('is not waited for by a call without a webhook', async () => {
    patient.deliveries.accept = () => Promise.withResolvers<void>().promise;
    const path = patient.app.play((_req, res) => res.end('fine'));
    expect((await patient.call({ path })).body.toString()).toBe('fine');
  });
});
