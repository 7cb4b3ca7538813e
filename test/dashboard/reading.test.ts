/** Reading a list page by page, where pages may be empty and still be followed by others. */
import { describe, expect, it } from 'vitest';
import { type Page, readAll, readOn } from '../../dashboard/src/views/deliveries/reading.ts';

/** Pages with so many items each; the cursor of a page is its index. */
function lists(sizes: readonly number[]) {
  const asked: { cursor: string | undefined; limit: number }[] = [];
  const read = async (page: { cursor: string | undefined; limit: number }): Promise<Page<string>> => {
    asked.push(page);
    const at = Number(page.cursor ?? 0);
    const items = Array.from({ length: sizes[at]! }, (_, index) => `${at}.${index}`);
    return { items, next: at + 1 < sizes.length ? String(at + 1) : null };
  };
  return { read, asked };
}

describe('reading on', () => {
  it.each<[string, readonly number[], number, number, string | null]>([
    ['ends where there is enough', [50, 50], 50, 1, '1'],
    ['ends with the last page', [3], 50, 1, null],
    ['goes on over pages with few', [3, 4, 50], 20, 3, null],
    ['goes on over empty pages', [0, 0, 0, 20, 20], 20, 4, '4'],
    ['asks after five empty ones', [0, 0, 0, 0, 0, 0, 20], 20, 5, '5'],
    ['counts the empty ones from the last with any', [0, 0, 0, 1, 0, 0, 0, 0, 0, 9], 20, 9, '9'],
  ])('%s', async (_, sizes, wanted, reads, next) => {
    const { read, asked } = lists(sizes);
    expect((await readAll({ read, wanted })).next).toBe(next);
    expect(asked).toHaveLength(reads);
  });

  it('starts at a cursor, and asks for what is missing, as much as a page may have', async () => {
    const { read, asked } = lists([9, 200, 50, 200]);
    const { items } = await readAll({ read, from: '1', wanted: 300 });
    expect(items).toHaveLength(450);
    expect(asked).toEqual([
      { cursor: '1', limit: 200 },
      { cursor: '2', limit: 100 },
      { cursor: '3', limit: 50 },
    ]);
  });

  it('tells each page as it comes', async () => {
    const told: number[] = [];
    for await (const page of readOn({ read: lists([0, 2, 0, 3]).read, wanted: 5 }))
      told.push(page.items.length);
    expect(told).toEqual([0, 2, 0, 3]);
  });
});
