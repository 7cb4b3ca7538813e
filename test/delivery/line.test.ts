import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { Line, type Place } from '../../src/delivery/line.ts';

type Step = 'append' | 'shift' | { remove: number };

const step = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.constant('append'),
  fc.constant('shift'),
  fc.record({ remove: fc.nat() }),
);

it('keeps the order of an array, wherever values leave it', () => {
  fc.assert(
    fc.property(fc.array(step), steps => {
      const line = new Line<number>();
      const places: Place<number>[] = [];
      const shifted: [actual: number | undefined, expected: number | undefined][] = [];
      for (const [value, one] of steps.entries()) {
        if (one === 'append') places.push(line.append(value));
        else if (one === 'shift') shifted.push([line.shift(), places.shift()?.value]);
        else if (places.length > 0) line.remove(places.splice(one.remove % places.length, 1)[0]!);
        expect([...line]).toEqual(places.map(place => place.value));
        expect(line.length).toBe(places.length);
      }
      expect(shifted.filter(([actual, expected]) => actual !== expected)).toEqual([]);
    }),
  );
});
