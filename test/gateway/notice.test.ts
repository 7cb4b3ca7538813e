/**
 * The end of a gateway that gives notice: until its time is over it takes every call, so that whoever gives it
 * calls can see that it is ending, and give them to another, before one is lost.
 */
import { describe, expect, it } from 'vitest';
import { dial } from '../support/caller.ts';
import { endingByHand } from './ending.ts';
import { openRig } from './rig.ts';

const GRACE_MS = 20_000;
const NOTICE_MS = 10_000;
const LAST_ANSWER = /^HTTP\/1.1 200 .*connection: close.*answer/is;

describe('a stop with notice', () => {
  it('takes calls until then, on new connections and on kept ones, each as the last of its connection', async () => {
    const { clock, end } = endingByHand(NOTICE_MS);
    const rig = await openRig({ clock });
    const name = rig.app.play((_, res) => res.end('answer'));
    const kept = await rig.converse();
    kept.send(rig.head({ path: name }));
    await kept.until('answer');
    const before = kept.text.length;

    const stopped = rig.stop(GRACE_MS, false, NOTICE_MS);
    const newcomer = await rig.converse();
    newcomer.send(rig.head({ path: name }));
    expect(await newcomer.end()).toMatch(LAST_ANSWER);
    kept.send(rig.head({ path: name }));
    expect((await kept.end()).slice(before)).toMatch(LAST_ANSWER);

    end();
    await stopped;
    await expect(dial(rig.port)).rejects.toThrow('ECONNREFUSED');
  });
});
