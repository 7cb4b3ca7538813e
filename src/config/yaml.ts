/**
 * YAML text to plain data with the line of every key. Faults are told in our own words: the parser's messages
 * can quote the text, and the text can hold a secret.
 */
import { type ErrorCode, LineCounter, parseDocument } from 'yaml';
import type { Path } from './mistakes.ts';
import type { Template } from './variables.ts';
import { type YamlFault, YamlWalk } from './yaml-walk.ts';

export interface YamlTree {
  /** Undefined where the text is not YAML. */
  readonly value: unknown;
  readonly faults: readonly YamlFault[];
  /** The line of the key or item, or of the nearest one around it. */
  readonly lineOf: (path: Path) => number;
}

const SYNTAX: Record<ErrorCode, string> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or a tag',
  BAD_ALIAS: 'the name of an anchor or alias is malformed',
  BAD_COLLECTION_TYPE: 'a tag does not fit its value',
  BAD_DIRECTIVE: 'a YAML directive is unknown or malformed',
  BAD_DQ_ESCAPE: 'unknown escape in double quotes; use single quotes for text with backslashes',
  BAD_INDENT: 'the indentation is wrong, or a closing bracket is missing',
  BAD_PROP_ORDER: 'an anchor or tag is in the wrong place',
  BAD_SCALAR_START: 'text cannot start with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a key and its value belong on a line of their own; text with ": " needs quotes',
  BLOCK_IN_FLOW: 'inside { } and [ ] everything is written with brackets',
  DUPLICATE_KEY: 'a key is given twice',
  IMPOSSIBLE: 'not readable as YAML',
  KEY_OVER_1024_CHARS: 'a key is too long',
  MISSING_CHAR: 'a closing quote or bracket, a colon, a comma or a space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line, followed by a colon',
  MULTIPLE_ANCHORS: 'a value can have one anchor only',
  MULTIPLE_DOCS: 'expected one YAML document; remove everything from the second `---` on',
  MULTIPLE_TAGS: 'a value can have one tag only',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'nested too deeply',
  TAB_AS_INDENT: 'tabs cannot indent; use spaces',
  TAG_RESOLVE_FAILED: 'unknown tag; text that starts with ! needs quotes',
  UNEXPECTED_TOKEN: 'not readable as YAML here; text with { } [ ] may need quotes',
};

export function readYaml({ marked, restore }: Template): YamlTree {
  const counter = new LineCounter();
  const options = { lineCounter: counter, prettyErrors: false, uniqueKeys: false, merge: true };
  const document = parseDocument(marked, options);
  const lineAt = (offset: number) => Math.max(1, counter.linePos(offset).line);
  // One slip often makes several errors on its line: the first tells enough.
  const syntax = new Map<number, YamlFault>();
  for (const { pos, code } of [...document.errors, ...document.warnings]) {
    const line = lineAt(pos[0]);
    if (!syntax.has(line)) syntax.set(line, { line, path: [], text: SYNTAX[code] });
  }
  const walk = new YamlWalk({ document, lineAt, restore });
  const value = document.errors.length === 0 ? walk.value(document.contents, []) : undefined;
  return { value, faults: [...syntax.values(), ...walk.faults], lineOf: path => walk.lineOf(path) };
}
