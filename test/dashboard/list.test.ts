/** The list of deliveries while somebody looks at it: one reading at a time, and the stream besides. */
import { describe, expect, it } from 'vitest';
import type { DeliveryList } from '../../dashboard/src/api/shapes.ts';
import { createList, type ListDeps } from '../../dashboard/src/views/deliveries/list.ts';
import { delivery, pendingAgain, runId } from './deliveries.ts';

type Answer = DeliveryList | Error;
type Listener = Parameters<ListDeps['openLive']>[1];

const page = (afters: readonly number[], next_cursor: string | null = null): DeliveryList => ({
  deliveries: afters.map(after => delivery(after)),
  next_cursor,
});

/** A list whose readings a test answers, and whose stream it is. */
function open({ busy = false } = {}) {
  const asked: Readonly<Record<string, string | undefined>>[] = [];
  const waiting: ((answer: Answer) => Promise<void>)[] = [];
  const streams: { filter: object; listener: Listener; closed: boolean }[] = [];
  const list = createList({
    filter: { state: 'failed', app: 'hello' },
    isBusy: () => busy,
    // Answers come even where nobody waits for them any more.
    read: parameters =>
      new Promise<DeliveryList>((resolve, reject) => {
        asked.push(parameters);
        waiting.push(async answer => {
          if (answer instanceof Error) reject(answer);
          else resolve(answer);
          await new Promise(next => void setImmediate(next));
        });
      }),
    openLive: (filter, listener) => {
      const stream = { filter, listener, closed: false };
      streams.push(stream);
      return () => {
        stream.closed = true;
      };
    },
  });
  const answer = (with_: Answer): Promise<void> => waiting.shift()!(with_);
  const shown = (): string[] => list.rows.value.shown.map(row => row.delivery.run_id);
  return { list, asked, answer, streams, shown };
}

describe('the list', () => {
  it('reads its first page, then older ones', async () => {
    const { list, asked, answer, shown } = open();
    list.read();
    expect(list.progress.value).toMatchObject({ known: false, reading: true });
    const first = Array.from({ length: 50 }, (_, index) => 100 - index);
    await answer(page(first, 'c'));
    expect(list.progress.value).toMatchObject({ known: true, reading: false });
    list.readOlder();
    await answer(page([5, 4]));
    expect(shown()).toEqual([...first, 5, 4].map(runId));
    expect(asked).toEqual([
      { state: 'failed', app: 'hello', limit: '50', cursor: undefined },
      { state: 'failed', app: 'hello', limit: '50', cursor: 'c' },
    ]);
  });

  it('counts the empty pages that it looks through, and asks before it goes on for long', async () => {
    const { list, answer, shown } = open();
    list.read();
    for (let reads = 1; reads <= 5; reads += 1) {
      await answer(page([], `c${reads}`));
      expect(list.progress.value).toMatchObject({ known: reads === 5, empty: reads });
    }
    expect(list.progress.value.reading).toBe(false);
    list.readOlder();
    await answer(page([7]));
    expect(list.progress.value).toMatchObject({ reading: false, empty: 0 });
    expect(shown()).toEqual([runId(7)]);
  });

  it('makes nothing of an answer that a later reading has overtaken', async () => {
    const { list, answer, shown } = open();
    list.read();
    list.read();
    await answer(page([1]));
    expect([shown(), list.progress.value.reading]).toEqual([[], true]);
    await answer(page([9]));
    expect([shown(), list.progress.value.reading]).toEqual([[runId(9)], false]);
  });

  it('tells what went wrong, and reads again when asked to', async () => {
    const { list, answer, shown, streams } = open();
    list.setLive(true);
    list.read();
    await answer(new Error('The query is not acceptable'));
    expect(list.progress.value).toMatchObject({ known: false, reading: false });
    expect(list.progress.value.error?.message).toBe('The query is not acceptable');
    expect(streams).toEqual([]);
    list.read();
    expect(list.progress.value.error).toBeUndefined();
    await answer(page([9]));
    expect(shown()).toEqual([runId(9)]);
  });
});

describe('its stream', () => {
  it('opens once the filter is known to be good, and is asked for all that may leave it', async () => {
    const { list, answer, streams } = open();
    list.setLive(true);
    list.read();
    expect(streams).toEqual([]);
    await answer(page([9]));
    expect(streams.map(each => each.filter)).toEqual([{ app: 'hello' }]);
  });

  it('has what is shown read again whenever something was missed', async () => {
    const { list, asked, answer, streams, shown } = open();
    list.setLive(true);
    list.read();
    await answer(page([9, 8], 'c'));
    await answer(page([], null));
    streams[0]!.listener.onMissed();
    await answer(page([10, 9]));
    expect(shown()).toEqual([runId(10), runId(9)]);
    expect(asked).toHaveLength(3);
    expect(streams).toHaveLength(1);
  });

  it('breaks off no reading of older ones where something was missed, but reads again after it', async () => {
    const { list, asked, answer, streams, shown } = open();
    list.setLive(true);
    list.read();
    const first = Array.from({ length: 50 }, (_, index) => 100 - index);
    await answer(page(first, 'c'));
    list.readOlder();
    streams[0]!.listener.onMissed();
    await answer(page([5]));
    expect(shown()).toEqual([...first, 5].map(runId));
    await answer(page([101, ...first]));
    expect(shown()).toEqual([101, ...first].map(runId));
    expect(asked).toHaveLength(3);
  });

  it('may tell of a delivery that the reading at its side does not know yet', async () => {
    const { list, answer, streams, shown } = open();
    list.setLive(true);
    list.read();
    await answer(page([9]));
    streams[0]!.listener.onMissed();
    streams[0]!.listener.onChange([delivery(10)]);
    await answer(page([9]));
    expect(shown()).toEqual([runId(10), runId(9)]);
    streams[0]!.listener.onMissed();
    await answer(page([9]));
    expect(shown()).toEqual([runId(9)]);
  });

  it('changes rows in place, and holds new ones back while somebody is busy', async () => {
    const { list, answer, streams, shown } = open({ busy: true });
    list.setLive(true);
    list.read();
    await answer(page([9]));
    streams[0]!.listener.onChange([delivery(9, pendingAgain), delivery(10)]);
    expect(shown()).toEqual([runId(9)]);
    expect(list.rows.value.shown[0]!.stray).toBe(true);
    list.release();
    expect(shown()).toEqual([runId(10), runId(9)]);
  });

  it.each(['stop', 'switch off'])('closes: %s', async how => {
    const { list, answer, streams } = open();
    list.setLive(true);
    list.read();
    await answer(page([9]));
    streams[0]!.listener.onConnection('live');
    expect(list.connection.value).toBe('live');
    if (how === 'stop') list.stop();
    else list.setLive(false);
    expect([streams[0]!.closed, list.connection.value]).toEqual([true, 'off']);
  });

  it('is not opened by a reading that ends after all has stopped', async () => {
    const { list, answer, streams, shown } = open();
    list.setLive(true);
    list.read();
    list.stop();
    await answer(page([9]));
    expect([streams, shown()]).toEqual([[], []]);
  });
});
