/** Every relative link in a document leads to a file, and where it names a heading, to that heading. */
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT, readDocument } from './markdown.ts';

const documents = globSync(['*.md', 'docs/*.md', 'examples/*.md', 'examples/*/*.md'], { cwd: ROOT }).sort();

function withoutCode(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, '');
}

function linksIn(document: string): string[] {
  const links = [...withoutCode(readDocument(document)).matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, link]) => link!,
  );
  return links.filter(link => !/^https?:/.test(link));
}

/** As GitHub makes them of headings. */
function anchorsIn(document: string): string[] {
  const headings = [...withoutCode(readDocument(document)).matchAll(/^#+ (.+)$/gm)];
  return headings.map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it('there are documents, and links in them', () => {
  expect(documents).toContain('README.md');
  expect(linksIn('README.md')).toContain('docs/contract.md');
  expect(anchorsIn('docs/contract.md')).toContain('outcomes-retries-and-states');
});

describe.each(documents)('%s', document => {
  it('has links that lead somewhere', () => {
    const broken = linksIn(document).filter(link => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? document : join(dirname(document), path);
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchorsIn(target).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});
