/**
 * Holds the layout: who may import whom, no circles, and who may look at the environment.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');

/** What everything may import; these import nothing of ours, except as their own rule says. */
const BASE = [
  'errors.ts',
  'clock.ts',
  'log.ts',
  'metrics.ts',
  'trace.ts',
  'port.ts',
  'verify.ts',
  'store/store.ts',
  'store/runs.ts',
  'store/ledger.ts',
  'store/stats.ts',
];
const EVERYTHING = [''];

/**
 * The first rule whose name begins a file's path is that file's rule: it may import its own folder, and
 * whatever begins with one of the names listed. A file without a rule is a mistake.
 */
const RULES: readonly (readonly [who: string, mayImport: readonly string[]])[] = [
  ['store/store.ts', ['store/runs.ts', 'store/ledger.ts', 'store/stats.ts']],
  ['store/runs.ts', ['store/store.ts']],
  ['store/ledger.ts', ['store/store.ts', 'store/runs.ts']],
  ['metrics.ts', ['metrics/', 'clock.ts', 'delivery/target.ts']],
  ...BASE.map(file => [file, []] as const),
  ['metrics/', [...BASE, 'delivery/outcome.ts', 'delivery/target.ts']],
  ['trace/', [...BASE, 'config/config.ts']],
  ['version.ts', []],
  ['demo.ts', []],
  ['token.ts', ['clock.ts']],
  ['receiver.ts', BASE],
  ['retention.ts', [...BASE, 'config/config.ts']],
  ['idempotency-key.ts', ['errors.ts']],
  ['stats.ts', BASE],
  ['redelivery.ts', BASE],
  ['events.ts', [...BASE, 'delivery/', 'gateway/', 'stats.ts']],
  ['dashboard.ts', BASE],
  ['admin.ts', [...BASE, 'config/config.ts', 'api/', 'dashboard.ts']],
  ['node.ts', [...BASE, 'store/directory.ts']],
  ['config/', BASE],
  ['delivery/', BASE],
  ['runtime/', [...BASE, 'config/config.ts']],
  ['store/', [...BASE, 'store/']],
  ['exchange/', [...BASE, 'config/config.ts', 'delivery/', 'runtime/']],
  ['gateway/', [...BASE, 'idempotency-key.ts', 'config/config.ts', 'delivery/', 'exchange/', 'runtime/']],
  ['runs/', [...BASE, 'config/config.ts', 'delivery/', 'exchange/', 'runtime/']],
  ['api/', [...BASE, 'idempotency-key.ts', 'config/config.ts', 'config/units.ts', 'delivery/', 'runtime/']],
  ['commands/', EVERYTHING],
  ['cli.ts', [...BASE, 'commands/', 'version.ts']],
  ['create-store.ts', [...BASE, 'config/config.ts', 'store/']],
  ['migrate.ts', [...BASE, 'config/config.ts', 'store/']],
  [
    'core.ts',
    [
      ...BASE,
      'config/config.ts',
      'delivery/',
      'exchange/',
      'gateway/',
      'metrics/',
      'runs/',
      'api/',
      'runtime/',
      'events.ts',
      'redelivery.ts',
      'stats.ts',
    ],
  ],
  ['service.ts', EVERYTHING],
  ['workers/', EVERYTHING],
];

/** Who may read the environment. */
const READS_ENVIRONMENT = ['config/', 'commands/', 'cli.ts', 'runtime/runners/'];
/** Who may read a configuration file. */
const READS_YAML = ['config/'];

const sources = new Map(
  globSync('**/*.ts', { cwd: SRC }).map(file => {
    const path = file.split(sep).join('/');
    return [path, withoutComments(readFileSync(join(SRC, file), 'utf8'))] as const;
  }),
);

function withoutComments(text: string): string {
  // Only those that begin a line: elsewhere the signs can be part of a string.
  return text.replaceAll(/^\s*(?:\/\*[\s\S]*?\*\/|\/\/.*$)/gm, '');
}

/** Static, re-exported, dynamic, and those that name a file for a worker. */
function importsOf(text: string): string[] {
  const forms = [
    /^(?:import|export)\b[^'"`;]*?\bfrom\s+'([^']+)'/gm,
    /^import\s+'([^']+)'/gm,
    /\bimport\(\s*'([^']+)'/g,
    /\bnew URL\(\s*'(\.[^']+)',\s*import\.meta\.url/g,
  ];
  return forms.flatMap(form => [...text.matchAll(form)].map(match => match[1]!));
}

function withoutTypes(text: string): string {
  return text.replaceAll(/^(?:import|export) type\b[^;]*;/gm, '');
}

/** Paths from src/. */
function ourImports(file: string, text = sources.get(file)!): string[] {
  return importsOf(text)
    .filter(name => name.startsWith('.'))
    .map(name =>
      normalize(join(dirname(file), name))
        .split(sep)
        .join('/'),
    )
    .filter(name => !name.startsWith('..'));
}

function beginsWithAny(path: string, names: readonly string[]): boolean {
  return names.some(name => path.startsWith(name));
}

function ruleOf(file: string) {
  return RULES.find(([who]) => file.startsWith(who));
}

it('finds the imports of every form', () => {
  const text = [
    `import a, { type B } from './a.ts';`,
    `import {\n  c,\n  d,\n} from './c.ts';`,
    `import './e.ts';`,
    `export { f } from './f.ts';`,
    `export type * from './g.ts';`,
    `const h = await import('./h.ts');`,
    `new Worker(new URL('./i.ts', import.meta.url));`,
    `// import j from './j.ts';`,
    `/* import k from './k.ts'; */`,
  ].join('\n');
  expect(importsOf(withoutComments(text)).sort()).toEqual(
    ['a', 'c', 'e', 'f', 'g', 'h', 'i'].map(name => `./${name}.ts`),
  );
  expect(ourImports('cli.ts')).toContain('errors.ts');
});

describe('every file imports only what its rule allows', () => {
  it.each([...sources.keys()])('%s', file => {
    const rule = ruleOf(file);
    expect(rule, 'has a rule').toBeDefined();
    const [who, mayImport] = rule!;
    const own = who.endsWith('/') ? [who] : [];
    expect(ourImports(file).filter(path => !beginsWithAny(path, [...own, ...mayImport]))).toEqual([]);
  });
});

it('a concrete store is known to nobody but its own folder, create-store.ts and migrate.ts', () => {
  const knowing = [...sources.keys()].filter(
    file => !file.startsWith('store/') && ourImports(file).some(path => /^store\/\w+\//.test(path)),
  );
  expect(knowing.filter(file => !['create-store.ts', 'migrate.ts'].includes(file))).toEqual([]);
});

it('there are no circles, except of types, which are gone at run time', () => {
  const loaded = new Map([...sources].map(([file, text]) => [file, ourImports(file, withoutTypes(text))]));
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] => {
    if (path.includes(file)) return [[...path.slice(path.indexOf(file)), file].join(' → ')];
    if (done.has(file) || !sources.has(file)) return [];
    const circles = loaded.get(file)!.flatMap(next => visit(next, [...path, file]));
    done.add(file);
    return circles;
  };
  expect([...sources.keys()].flatMap(file => visit(file, []))).toEqual([]);
});

it('only the configuration and the commands look at the environment', () => {
  const readers = [...sources].filter(([, text]) =>
    /\bprocess\.env\b|\bimport .*\benv\b.*'node:process'/.test(text),
  );
  expect(readers.map(([file]) => file).filter(file => !beginsWithAny(file, READS_ENVIRONMENT))).toEqual([]);
});

it('only the configuration reads configuration files', () => {
  const readers = [...sources].filter(([, text]) => importsOf(text).includes('yaml'));
  expect(readers.map(([file]) => file).filter(file => !beginsWithAny(file, READS_YAML))).toEqual([]);
});
