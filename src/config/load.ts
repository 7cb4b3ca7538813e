/**
 * Loads the configuration: one YAML file and the environment over it, checked, with every mistake of both
 * reported at once. The only reader of the environment and of the files of configuration.
 */
import { isLoopbackHost } from './address.ts';
import { checkApps, environmentOfApps } from './apps.ts';
import { checkBlock, whole } from './check.ts';
import type { Address, Config } from './config.ts';
import { checkDatabase } from './database.ts';
import type { DatabaseUrl } from './database-url.ts';
import { readOverrides, refuseUnknownVariables } from './environment.ts';
import { readConfigFile } from './files.ts';
import { readLayers } from './layers.ts';
import { Mistakes } from './mistakes.ts';
import { checkProjects } from './projects.ts';
import { ASYNC, NAMED, NESTED, TOP, WEBHOOKS } from './schema.ts';
import { Settings } from './settings.ts';
import { readTracing } from './tracing.ts';
import type { Environment } from './variables.ts';

export interface ConfigSources {
  /** Named by the operator; otherwise `AFTERWORD_CONFIG`, otherwise `afterword.yaml` in `cwd` if it exists. */
  readonly file?: string | undefined;
  readonly env: Environment;
  readonly cwd: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** What works and is most likely not meant, in the form of mistakes. */
  readonly warnings: readonly string[];
  /** Absolute path of the file that was read, if there was one. */
  readonly file?: string;
  /** Where public keys were read from, by project. */
  readonly keyFiles: ReadonlyMap<string, string>;
  /** The address of the database as it was given, with absolute paths. */
  readonly databaseUrl?: DatabaseUrl;
}

/** Throws a `UsageError` that lists every mistake. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const mistakes = new Mistakes();
  const { settings, file, referred } = readSettings(sources, mistakes);
  const top = checkBlock(settings, [], TOP, [...Object.keys(NESTED), ...NAMED]) ?? {};
  checkListeners(settings, top);
  const database = checkDatabase(settings, top);
  const { projects, keyFiles } = checkProjects(settings);
  const apps = checkApps(settings);
  const webhooks = whole(checkBlock(settings, ['webhooks'], WEBHOOKS) ?? {});
  const runs = whole(checkBlock(settings, ['async'], ASYNC) ?? {});
  mistakes.throwIfAny();
  const {
    listen,
    admin,
    adminToken,
    data,
    role,
    workers,
    encryptionKey = [],
    logLevel,
    appTimeout,
  } = whole(top);
  const tracing = readTracing(sources.env, settings.warnings);
  const config: Config = {
    listen,
    admin,
    ...(adminToken !== undefined && { adminToken }),
    data: settings.resolve(['data'], data),
    ...(database !== undefined && { database: database.config }),
    role,
    workers,
    encryptionKeys: encryptionKey,
    logLevel,
    projects,
    apps,
    webhooks,
    async: runs,
    appTimeout,
    appEnvironment: environmentOfApps(sources.env, referred),
    ...(tracing !== undefined && { tracing }),
  };
  return {
    config,
    warnings: settings.warnings,
    ...(file !== undefined && { file }),
    keyFiles,
    ...(database !== undefined && { databaseUrl: database.url }),
  };
}

function readSettings({ file: named, env, cwd }: ConfigSources, mistakes: Mistakes) {
  const overrides = readOverrides({ env, cwd, mistakes });
  const file = readConfigFile({ file: named, env, cwd, mistakes });
  const { layers, referred } = readLayers({ file, overrides, env, cwd, mistakes });
  refuseUnknownVariables({ env, mistakes }, referred);
  mistakes.throwIfFatal();
  return { settings: new Settings({ layers, mistakes }), file: file?.path, referred };
}

interface Listeners {
  readonly listen?: Address;
  readonly admin?: Address;
}

function checkListeners(settings: Settings, { listen, admin }: Listeners): void {
  if (admin === undefined) return;
  if (!isLoopbackHost(admin.host) && !settings.has(['adminToken'])) {
    settings.mistake(['adminToken'], 'is needed, since `admin` listens on more than loopback', ['admin']);
  }
  if (admin.port !== 0 && admin.port === listen?.port && admin.host === listen.host) {
    settings.mistake(['admin'], 'expected another address than that of `listen`');
  }
}
