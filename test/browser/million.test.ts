/**
 * The dashboard of a service with a million deliveries behind it: the same is done with it, and every view is there
 * within a second. That is the one time that a test here holds to a number, since it is what is promised.
 */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { describeInBrowser, useBrowser } from '../support/browser.ts';
import { HOSTS, PENDING_COUNT, RARE } from '../support/million-sql.ts';
import { PROJECT } from '../support/service.ts';
import { mend } from './mending.ts';
import { OTHER_PROJECT, pastOf } from './past.ts';
import { useScene } from './scene.ts';

const ALLOWED_MS = 1_000;
/** Of the times of these the best counts: what else the machine does is not to be measured. */
const TRIES = 10;

const PAGE = 50;
const HOST = HOSTS.at(-1)!;

/** Filters, and how many rows there are at once. */
const LISTS = [
  ['', PAGE],
  ['state=pending', Math.min(PAGE, PENDING_COUNT)],
  ['state=delivered', PAGE],
  ['state=failed', PAGE],
  ['state=cancelled', PAGE],
  ['reason=exhausted', PAGE],
  ['app=score', PAGE],
  [`host=${HOST}`, PAGE],
  ['status=204', PAGE],
  ['status=5xx', PAGE],
  ['since=24h', PAGE],
  ['until=7d', PAGE],
  [`project=${OTHER_PROJECT}`, PAGE],
  [`project=${PROJECT}&app=score&state=failed`, PAGE],
  [`project=${PROJECT}&host=${HOST}&status=422&since=7d`, 1],
  [`state=failed&reason=rejected&host=${HOST}&app=chat`, PAGE],
  [`host=${RARE.host}`, RARE.deliveries],
  [`app=${RARE.app}&state=failed`, 0],
  ['host=nobody.example', 0],
  // There is no index for these: it is looked for them among the newest, and then asked whether to go on.
  [`app=${RARE.app}`, 0],
  [`app=${RARE.app}&status=2xx&state=delivered`, 0],
] as const;

/** At the end of a list. */
const LIST_ENDS = /Older|no older ones|Look further|No delivery matches/;

interface Watched {
  readonly path: string;
  /** What there must be, and how many. */
  readonly selector: string;
  readonly count: number;
  /** What there must be to be read. */
  readonly text?: RegExp;
}

describeInBrowser('a million deliveries', () => {
  const open = useBrowser();
  const past = pastOf({ deliveries: 1_000_000, hours: 29 * 24, runs: 100_000 });
  const scene = useScene(past);

  const watched: readonly Watched[] = [
    ...['', '?window=24h', '?window=7d'].map(query => ({
      path: `/${query}`,
      selector: 'canvas',
      count: 3,
    })),
    ...LISTS.map(([query, count]) => ({
      path: `/deliveries?${query}`,
      selector: 'tbody tr',
      count,
      text: LIST_ENDS,
    })),
    { path: `/deliveries/${past.failed}`, selector: 'h2', count: 2, text: /connection_refused/ },
    { path: '/runs', selector: 'tbody tr', count: PAGE },
    { path: '/runs?state=failed', selector: 'tbody tr', count: PAGE },
    { path: `/runs/${past.run}`, selector: 'h2', count: 1, text: /succeeded/ },
    { path: '/apps', selector: 'h2', count: 1 },
    { path: '/health', selector: 'tbody tr', count: 5 },
  ];

  const times: string[] = [];
  afterAll(() => console.info(times.join('\n')));

  it('one of them failed: it is found, read, sent again and seen to succeed', async () => {
    expect(await mend(scene, open)).toEqual(['sent', 'sent']);
  });

  it.each(watched)('$path is there within a second', async each => {
    const page = await open({ baseURL: scene.origin, scripts: [COMPLETE], traced: false });
    const took = await bestOf(page, each);
    times.push(`${Math.round(took)} ms  ${each.path}`);
    expect(took).toBeLessThan(ALLOWED_MS);
  });
});

/** Resolves once the view has all that is expected: with the time since its navigation began. */
const COMPLETE = `
  globalThis.complete = (selector, count, text) => new Promise(resolve => {
    const look = () => {
      const main = document.querySelector('main');
      const there = main?.querySelector('h1') && !document.querySelector('[aria-busy=true], .trouble') &&
        main.querySelectorAll(selector).length >= count && new RegExp(text).test(main.innerText);
      if (there) resolve(performance.now());
      else requestAnimationFrame(look);
    };
    look();
  });`;

/** As the browser has it. */
async function timeOf(page: Page, { path, selector, count, text = /./ }: Watched): Promise<number> {
  await page.goto(path, { waitUntil: 'commit' });
  return page.evaluate<number>(
    `complete(${[selector, count, text.source].map(each => JSON.stringify(each))})`,
  );
}

/** No more often than it takes to be below what is allowed with room to spare. */
async function bestOf(page: Page, watched: Watched): Promise<number> {
  let best = Infinity;
  for (let tries = 0; tries < TRIES && best > ALLOWED_MS / 2; tries += 1)
    best = Math.min(best, await timeOf(page, watched));
  return best;
}
