/**
 * The bench of the stores with a handful of deliveries on PostgreSQL: one and two dispatchers, on a database
 * that is empty and on one that is filled, and nothing left behind on the server.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { runIdOf } from '../bench/store/deliveries.ts';
import { storeAt } from '../bench/store/place.ts';
import { openPostgres } from '../bench/store/postgres.ts';
import { temporaryDirectory } from './store/samples.ts';

const RUN = join(import.meta.dirname, '..', 'bench', 'store', 'run.ts');

describe('a run', () => {
  it('takes deliveries through both lives with one dispatcher and with two', async () => {
    const scale = ['--deliveries', '21', '--rounds', '1', '--rows', '100', '--json'];
    const where = ['--only', 'postgres', '--database', inject('databaseUrl')];
    const { stdout } = await promisify(execFile)(process.execPath, [RUN, ...where, ...scale]);
    const cases = [1024, 102_400].flatMap(size =>
      ['handed off', 'claimed'].flatMap(life =>
        [1, 2].map(dispatchers => ({
          store: 'postgres',
          life,
          size,
          dispatchers,
          deliveries: size === 1024 ? 42 : 6,
        })),
      ),
    );
    expect(JSON.parse(stdout).figures).toMatchObject(cases);
  }, 60_000);
});

describe('a database', () => {
  it('is filled with deliveries of the past that the store finds, and emptied', async () => {
    const server = await openPostgres(inject('databaseUrl'));
    const ground = await server.createGround(temporaryDirectory());
    const [from, until] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 4)];
    await ground.addPast({ deliveries: 30, from, until, size: 1024 });
    expect(await ground.tally(from)).toEqual({ pending: 0, delivered: 30, attempts: 30, attempted: 30 });
    expect(await ground.tally(Date.UTC(2026, 0, 3))).toMatchObject({ delivered: 10 });
    const store = storeAt(ground.place);
    await store.open();
    expect(await store.find(runIdOf(from))).toMatchObject({
      state: 'delivered',
      createdAt: from,
      attempts: [{ number: 1, status: 200 }],
    });
    await store.close();
    await ground.clear();
    expect(await ground.tally(from)).toEqual({ pending: 0, delivered: 0, attempts: 0, attempted: 0 });
    await ground.remove();
    await server.close();
  });
});
