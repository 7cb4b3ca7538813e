import { describe, expect, it } from 'vitest';
import { type Guest, Room } from '../../src/delivery/room.ts';

const guest = (projectId: string, origin: string, claimed = false): Guest => ({ projectId, origin, claimed });

/** Hands off to one target for as long as there is room; tells how many went in. */
function fill(room: Room, projectId: string, origin: string): number {
  let count = 0;
  for (; room.admits({ projectId, origin }); count += 1) room.enter(guest(projectId, origin));
  return count;
}

describe('room for deliveries', () => {
  it('gives one target a quarter, and keeps the rest for others, a tenth of their half each', () => {
    const room = new Room({ deliveries: 2_000, bodies: 0 });
    expect(fill(room, 'p', 'sick')).toBe(500);
    expect(fill(room, 'p', 'a')).toBe(100);
    expect(fill(room, 'q', 'b')).toBe(100);
    expect(fill(room, 'p', 'sick')).toBe(0);
    expect(room.held).toBe(700);
  });

  it('keeps a project with many targets from filling it', () => {
    const room = new Room({ deliveries: 2_000, bodies: 0 });
    for (let target = 0; target < 100; target += 1) fill(room, 'greedy', `t${target}`);
    expect(room.held).toBe(750);
    expect(room.admits({ projectId: 'modest', origin: 'm' })).toBe(true);
  });

  it('never hands off more than its half, whoever comes', () => {
    const room = new Room({ deliveries: 2_000, bodies: 0 });
    for (let target = 0; target < 100; target += 1) fill(room, `p${target % 7}`, `t${target}`);
    expect(room.held).toBe(1_000);
  });

  it('has room again for those who left', () => {
    const room = new Room({ deliveries: 2_000, bodies: 0 });
    fill(room, 'p', 'sick');
    for (let left = 0; left < 10; left += 1) room.leave(guest('p', 'sick'));
    expect(fill(room, 'p', 'sick')).toBe(10);
  });

  it('claims whole batches into the other half', () => {
    const room = new Room({ deliveries: 4_000, bodies: 0 });
    let batches = 0;
    for (; room.claimable() > 0; batches += 1) {
      expect(room.claimable()).toBe(500);
      for (let one = 0; one < 500; one += 1) room.enter(guest('p', 'a', true));
    }
    expect(batches).toBe(4);
    expect(room.admits({ projectId: 'p', origin: 'a' })).toBe(true);
    for (let left = 0; left < 499; left += 1) room.leave(guest('p', 'a', true));
    expect(room.claimable()).toBe(0);
    room.leave(guest('p', 'a', true));
    expect(room.claimable()).toBe(500);
  });

  it.each([1, 2, 3, 5, 10])('can both hand off and claim with %i places', deliveries => {
    const room = new Room({ deliveries, bodies: 0 });
    expect(room.admits({ projectId: 'p', origin: 'a' })).toBe(true);
    expect(room.claimable()).toBeGreaterThan(0);
  });
});

describe('room for bodies', () => {
  it('keeps bodies up to its bytes, and again what was released', () => {
    const room = new Room({ deliveries: 10, bodies: 100 });
    expect([60, 40, 1].map(size => room.keepBody(size))).toEqual([true, true, false]);
    room.releaseBody(40);
    expect([41, 40].map(size => room.keepBody(size))).toEqual([false, true]);
  });
});
