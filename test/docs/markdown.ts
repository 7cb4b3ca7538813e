/**
 * Reads the documents as their tests need them: sections, tables, code blocks, and things in backticks.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..');

/** A document by its path in the checkout. */
export function readDocument(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** From a heading to the next of its level or above. */
export function sectionOf(text: string, heading: string): string {
  const lines = text.split('\n');
  const start = lines.findIndex(line => line.replace(/^#+ /, '') === heading && line.startsWith('#'));
  if (start < 0) throw new Error(`there is no section ${heading}`);
  const level = lines[start]!.indexOf(' ');
  const length = lines.slice(start + 1).findIndex(line => /^#+ /.test(line) && line.indexOf(' ') <= level);
  return lines.slice(start, length < 0 ? undefined : start + 1 + length).join('\n');
}

/** The cells below the header of the table whose first column is called `column`. */
export function tableOf(text: string, column: string): string[][] {
  const lines = text.split('\n');
  const header = lines.findIndex(line => line.startsWith('|') && cellsOf(line)[0] === column);
  if (header < 0) throw new Error(`there is no table of ${column}`);
  const rows = lines.slice(header + 2);
  const end = rows.findIndex(line => !line.startsWith('|'));
  return rows.slice(0, end < 0 ? undefined : end).map(cellsOf);
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, line.lastIndexOf('|'))
    .split('|')
    .map(cell => cell.trim());
}

export interface CodeBlock {
  readonly language: string;
  /** `key=value` after the language. */
  readonly label: string;
  readonly text: string;
}

export function codeBlocksOf(text: string): CodeBlock[] {
  return [...text.matchAll(/^```(\w*) ?(\S*)\n(.*?)^```$/gms)].map(([, language, label, code]) => ({
    language: language!,
    label: label!,
    text: code!,
  }));
}

/** Everything in backticks that is not in a code block. */
export function namesIn(text: string): string[] {
  const prose = text.replaceAll(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, name]) => name!);
}
