import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { StartError } from '../../src/errors.ts';
import { loadKeyring } from '../../src/store/keys.ts';
import { createKeyring } from '../../src/store/seal.ts';
import { temporaryDirectory } from './samples.ts';

const run = promisify(execFile);

describe('loadKeyring', () => {
  it('makes a key once and keeps it, readable by its owner alone', () => {
    const dir = join(temporaryDirectory(), 'made', 'on', 'the', 'way');
    const keyring = loadKeyring({ dir });
    expect(loadKeyring({ dir })).toEqual(keyring);
    expect(readdirSync(dir)).toEqual(['encryption.key']);
    expect(statSync(join(dir, 'encryption.key')).mode & 0o777).toBe(0o600);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    const kept = Buffer.from(readFileSync(join(dir, 'encryption.key'), 'utf8'), 'base64');
    expect(createKeyring([kept])).toEqual(keyring);
  });

  it('takes the configured keys, makes none, and still opens with a kept one', () => {
    const dir = temporaryDirectory();
    const configured = [randomBytes(32), randomBytes(32)];
    expect(loadKeyring({ dir, configured })).toEqual(createKeyring(configured));
    expect(readdirSync(dir)).toEqual([]);

    const kept = loadKeyring({ dir });
    const both = loadKeyring({ dir, configured });
    const [newer, older] = configured.map(key => createKeyring([key]).newest);
    expect(both.newest).toBe(newer);
    expect([...both.keys.keys()]).toEqual([newer, older, kept.newest]);
  });

  it('gives processes that start at the same moment the same key', async () => {
    const dir = temporaryDirectory();
    const module = JSON.stringify(new URL('../../src/store/keys.ts', import.meta.url).href);
    const script = `import { loadKeyring } from ${module};
      process.stdout.write(loadKeyring({ dir: ${JSON.stringify(dir)} }).newest)`;
    const runs = Array.from({ length: 4 }, () =>
      run(process.execPath, ['--input-type=module', '-e', script]),
    );
    const ids = (await Promise.all(runs)).map(({ stdout }) => stdout);
    expect(new Set(ids)).toEqual(new Set([loadKeyring({ dir }).newest]));
    expect(readdirSync(dir)).toEqual(['encryption.key']);
  });

  it.each([
    ['empty', ''],
    ['too short', randomBytes(31).toString('base64')],
    ['too long', randomBytes(33).toString('base64')],
    ['not base64', 'x'.repeat(43)],
  ])('refuses a kept key that is %s', (_, text) => {
    const dir = temporaryDirectory();
    writeFileSync(join(dir, 'encryption.key'), text);
    expect(() => loadKeyring({ dir })).toThrow(StartError);
    expect(() => loadKeyring({ dir })).toThrow('is damaged');
  });

  it('refuses a data directory that is a file', () => {
    const file = join(temporaryDirectory(), 'file');
    writeFileSync(file, '');
    expect(() => loadKeyring({ dir: file })).toThrow(StartError);
    expect(() => loadKeyring({ dir: join(file, 'below') })).toThrow('is a file');
  });
});
