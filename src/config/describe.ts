/**
 * The effective configuration as an operator would write it: every default filled in, the contract's key
 * names and units, secrets redacted. With the secrets put back it loads to the same configuration.
 */
import { stringify } from 'yaml';
import { formatAddress } from './address.ts';
import type { AppConfig, ProcessConfig, ProjectConfig } from './config.ts';
import { formatDatabaseUrl } from './database-url.ts';
import type { LoadedConfig } from './load.ts';
import { formatDuration, formatSize } from './units.ts';
import { escapeReferences } from './variables.ts';

const REDACTED = '[redacted]';

/** YAML text. */
export function describeConfig(loaded: LoadedConfig): string {
  const data = JSON.stringify(describeConfigData(loaded));
  const written = JSON.parse(data, (_, value: unknown) =>
    typeof value === 'string' ? escapeReferences(value) : value,
  );
  return stringify(written, { lineWidth: 0 });
}

/** The same as plain data, for JSON. */
export function describeConfigData(loaded: LoadedConfig): Record<string, unknown> {
  const { config, keyFiles } = loaded;
  const { webhooks, async: runs, encryptionKeys: keys } = config;
  const apps = [...config.apps.values()].flatMap(ofProject => [...ofProject.values()]);
  return {
    listen: formatAddress(config.listen),
    admin: formatAddress(config.admin),
    ...(config.adminToken !== undefined && { adminToken: REDACTED }),
    data: config.data,
    ...describeDatabase(loaded),
    role: config.role,
    workers: config.workers,
    ...(keys.length > 0 && { encryptionKey: keys.length === 1 ? REDACTED : keys.map(() => REDACTED) }),
    logLevel: config.logLevel,
    projects: Object.fromEntries(
      [...config.projects.values()].map(project => [
        project.id,
        describeProject(project, keyFiles.get(project.id)),
      ]),
    ),
    apps: Object.fromEntries(apps.map(app => [`${app.projectId}/${app.name}`, describeApp(app)])),
    webhooks: {
      attemptTimeout: formatDuration(webhooks.attemptTimeout),
      maxBody: formatSize(webhooks.maxBody),
      commitWait: formatDuration(webhooks.commitWait),
      concurrency: webhooks.concurrency,
      perTarget: webhooks.perTarget,
      allowTargets: [...webhooks.allowTargets],
      retention: formatDuration(webhooks.retention),
    },
    appTimeout: formatDuration(config.appTimeout),
    async: {
      timeout: formatDuration(runs.timeout),
      maxStarts: runs.maxStarts,
      maxRequest: formatSize(runs.maxRequest),
      retention: formatDuration(runs.retention),
    },
  };
}

function describeDatabase({ config: { database }, databaseUrl: url }: LoadedConfig) {
  if (database === undefined || url === undefined) return {};
  const apart = database.password !== undefined && url.password === undefined;
  return {
    database: formatDatabaseUrl(url.password === undefined ? url : { ...url, password: REDACTED }),
    ...(apart && { databasePassword: REDACTED }),
    databaseConnections: database.connections,
  };
}

function describeProject(project: ProjectConfig, keyFile: string | undefined) {
  const { secret, jwksUrl, issuer, audience } = project.jwt;
  return {
    jwt: {
      ...(secret !== undefined && { secret: REDACTED }),
      ...(keyFile !== undefined && { publicKey: keyFile }),
      ...(jwksUrl !== undefined && { jwksUrl: jwksUrl.href }),
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience }),
    },
    standardWebhooks: project.standardWebhooks,
    requireSecret: project.requireSecret,
    maxPending: project.maxPending,
  };
}

function describeApp({ runtime, place, forwardAuthorization }: AppConfig) {
  const where =
    place.kind === 'url'
      ? { url: place.url.href, concurrency: place.concurrency }
      : describeProcess(place.process);
  return { runtime, ...where, forwardAuthorization };
}

/** The values of its environment may be secrets. */
function describeProcess({ program, env, cwd, replicas, concurrency, queue, start }: ProcessConfig) {
  const { kind: _, ...what } = program;
  const names = Object.keys(env).map(name => [name, REDACTED]);
  return {
    ...what,
    cwd,
    ...(names.length > 0 && { env: Object.fromEntries(names) as Record<string, string> }),
    replicas,
    concurrency,
    queue,
    start,
  };
}
