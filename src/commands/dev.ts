/**
 * `afterword dev`: everything on one machine with no configuration. A demo project with a token, a cortex
 * and a custom app, a receiver that checks and prints each delivery, and a call to paste.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { systemClock } from '../clock.ts';
import type { AppConfig, Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { type DemoApps, startDemoApps } from '../demo.ts';
import { StartError } from '../errors.ts';
import { createLogger } from '../log.ts';
import { createReceiver } from '../receiver.ts';
import { createService, type Service } from '../service.ts';
import { issueToken } from '../token.ts';
import { packageVersion } from '../version.ts';
import { integerArgument, jsonOption } from './options.ts';
import { type Io, paint, printJson } from './output.ts';
import { printReceived, printReceivedJson } from './received.ts';

const PROJECT = 'p-demo';
/** For a demonstration on one machine: not a secret. */
const WEBHOOK_SECRET = 'demo-webhook-secret';
const TOKEN_DAYS = 30;
const LOOPBACK = ['127.0.0.0/8', '::1/128', 'localhost'];

interface Options {
  readonly port?: number;
  readonly data: string;
  readonly json?: true;
}

const NOTES = `
Examples:
  afterword dev
  afterword dev --port 3000
  AFTERWORD_LOG_LEVEL=info afterword dev      with a line for each call and attempt`;

export function devCommand(io: Io): Command {
  return new Command('dev')
    .description('Try everything on this machine, with no configuration.')
    .option(
      '--port <number>',
      'where calls come in (default: 8080, or a free one)',
      integerArgument(0, 65_535),
    )
    .option('--data <dir>', 'where deliveries are kept', '.afterword')
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((options: Options) => dev(options, io));
}

async function dev(options: Options, io: Io): Promise<void> {
  const stopped = io.untilStopped();
  const data = resolve(io.cwd, options.data);
  const secret = await devSecret(data);
  const print = options.json ? printReceivedJson : printReceived;
  const receiver = createReceiver({
    host: '127.0.0.1',
    port: 0,
    status: 200,
    delayMs: 0,
    clock: systemClock,
    secrets: [WEBHOOK_SECRET],
    onDelivery: delivery => print(io, delivery),
  });
  const target = await receiver.start();
  const apps = await startDemoApps();
  const { service, base } = await startService(options, io, devConfig({ data, secret, apps, io }));
  const ttlSeconds = TOKEN_DAYS * 24 * 3600;
  const token = await issueToken({ secret, projectId: PROJECT, ttlSeconds, clock: systemClock });
  if (options.json) printJson(io, { ready: true, base, project_id: PROJECT, token, receiver: target.href });
  else welcome(io, { base, token, target });
  await stopped;
  await service.stop();
  await apps.stop();
  await receiver.stop();
}

/** Kept, so that a token from the last time still works. */
async function devSecret(data: string): Promise<string> {
  const file = join(data, 'dev-jwt-secret');
  try {
    await mkdir(data, { recursive: true, mode: 0o700 });
    await writeFile(file, randomBytes(32).toString('base64url'), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw new StartError(`cannot write to ${data}: ${message}`);
  }
  return (await readFile(file, 'utf8')).trim();
}

function devConfig({
  data,
  secret,
  apps,
  io,
}: {
  data: string;
  secret: string;
  apps: DemoApps;
  io: Io;
}): Config {
  const { AFTERWORD_LOG_LEVEL: level = 'warn' } = io.env;
  // The defaults, and nothing of the environment but the level of the log.
  const { config } = loadConfig({ env: { AFTERWORD_LOG_LEVEL: level }, cwd: data });
  const app = (name: string, runtime: AppConfig['runtime'], url: URL): [string, AppConfig] => [
    name,
    { projectId: PROJECT, name, runtime, url, forwardAuthorization: false },
  ];
  const project = {
    id: PROJECT,
    jwt: { secret },
    standardWebhooks: false,
    requireSecret: false,
    maxPending: 100_000,
  };
  return {
    ...config,
    data,
    projects: new Map([[PROJECT, project]]),
    apps: new Map([
      [PROJECT, new Map([app('hello', 'cortex', apps.functions), app('web', 'custom', apps.web)])],
    ]),
    webhooks: { ...config.webhooks, allowTargets: LOOPBACK },
  };
}

/** On the usual ports; where they are taken and none was asked for, on free ones. */
async function startService(
  { port }: Options,
  io: Io,
  config: Config,
): Promise<{ service: Service; base: string }> {
  const choices = port === undefined ? [config.listen.port, 0] : [port];
  const pretty = 'isTTY' in io.stderr && io.stderr.isTTY === true;
  const log = createLogger({ level: config.logLevel, pretty });
  let failure: unknown;
  for (const choice of choices) {
    const usual = choice === config.listen.port;
    const listen = { ...config.listen, port: choice };
    const admin = { ...config.admin, port: usual ? config.admin.port : 0 };
    const service = createService({ config: { ...config, listen, admin }, version: packageVersion(), log });
    try {
      const { listen: bound } = await service.start();
      return { service, base: `http://127.0.0.1:${bound.port}` };
    } catch (error) {
      if (!(error instanceof StartError) || !error.message.includes('cannot listen')) throw error;
      failure = error;
    }
  }
  throw failure;
}

function welcome(io: Io, { base, token, target }: { base: string; token: string; target: URL }): void {
  const bold = (text: string): string => paint(io.stdout, 'bold', text);
  const call = (path: string, extra: string): string =>
    [
      `curl '${base}/v4/${PROJECT}/${path}?webhookEndpoint=${encodeURIComponent(target.href)}'`,
      `  -H 'Authorization: Bearer ${token}'`,
      `  -H 'X-Webhook-Secret: ${WEBHOOK_SECRET}'${extra}`,
    ].join(' \\\n');
  io.stdout.write(`
${bold('Afterword is running.')} Calls come in at ${base}, deliveries go to ${target.href}

${bold('Call a function')}; its answer is printed by curl, and its delivery here:

${call('hello/run', ` \\\n  -H 'Content-Type: application/json' -d '{"name":"Ada"}'`)}

${bold('Call a custom app')}, any method and path:

${call('web/echo', '')}

Functions: hello/run, hello/teapot, hello/fail, hello/slow. Custom: web/, web/echo, web/count (a stream).
Deliveries received, signature checked:

`);
}
