/**
 * `afterword dev`: everything on one machine with no configuration. A demo project with a token, a receiver
 * that checks and prints each delivery, a call to paste, and an app: the functions of a folder, reloaded
 * when they change, or without one a cortex and a custom app to try.
 */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { systemClock } from '../clock.ts';
import type { AppConfig, Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { startDemoApps } from '../demo.ts';
import { StartError } from '../errors.ts';
import { createLogger } from '../log.ts';
import { createReceiver } from '../receiver.ts';
import { createService, type Service } from '../service.ts';
import { packageVersion } from '../version.ts';
import { DEV_DATA, DEV_PROJECT, devSecret, devToken } from './dev-token.ts';
import { type Folder, openFolder } from './folder.ts';
import { integerArgument, jsonOption } from './options.ts';
import { type Io, paint, printJson } from './output.ts';
import { printReceived, printReceivedJson } from './received.ts';
import { DEFAULT_URL } from './service-options.ts';

/** For a demonstration on one machine: not a secret. */
const WEBHOOK_SECRET = 'demo-webhook-secret';
const LOOPBACK = ['127.0.0.0/8', '::1/128', 'localhost'];

interface Options {
  readonly port?: number;
  readonly data: string;
  readonly json?: true;
}

const NOTES = `
A folder is served when it has a main.ts, main.js or main.py: every function that it exports can be called,
and it is reloaded when a file in it changes.

Examples:
  afterword dev
  afterword dev ./my-functions
  afterword dev --port 3000
  AFTERWORD_LOG_LEVEL=info afterword dev      with a line for each call and attempt`;

export function devCommand(io: Io): Command {
  return new Command('dev')
    .description('Try everything on this machine, with no configuration.')
    .argument('[folder]', 'a folder with functions, in place of the demo apps')
    .option(
      '--port <number>',
      'where calls come in (default: 8080, or a free one)',
      integerArgument(0, 65_535),
    )
    .option('--data <dir>', 'where deliveries are kept', DEV_DATA)
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((folder: string | undefined, options: Options) => dev(folder, options, io));
}

/** What there is to call. */
interface Stage {
  readonly apps: readonly AppConfig[];
  /** `app/function`, with the parameters of an example: what the pasted call calls. */
  readonly example: { readonly path: string; readonly parameters: string };
  readonly notes: string;
  /** Begins to watch for changes, where there is something to reload. */
  watch(service: Service): void;
  stop(): Promise<void>;
}

async function dev(path: string | undefined, options: Options, io: Io): Promise<void> {
  const stopped = io.untilStopped();
  const folder = path === undefined ? undefined : await openFolder(resolve(io.cwd, path), DEV_PROJECT);
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
  const stage = folder === undefined ? await demoStage() : folderStage(folder, io);
  const config = devConfig({ data, secret, stage, io });
  const { service, base, dashboard } = await startService(options, io, config);
  stage.watch(service);
  const token = await devToken(secret);
  if (options.json)
    printJson(io, { ready: true, base, dashboard, project_id: DEV_PROJECT, token, receiver: target.href });
  else welcome(io, { base, dashboard, token, target, stage, beside: options.data === DEV_DATA });
  await stopped;
  await service.stop();
  await stage.stop();
  await receiver.stop();
}

async function demoStage(): Promise<Stage> {
  const demo = await startDemoApps();
  const app = (name: string, runtime: AppConfig['runtime'], url: URL): AppConfig => ({
    projectId: DEV_PROJECT,
    name,
    runtime,
    place: { kind: 'url', url, concurrency: 8 },
    forwardAuthorization: false,
  });
  return {
    apps: [app('hello', 'cortex', demo.functions), app('web', 'custom', demo.web)],
    example: { path: 'hello/run', parameters: '{"name":"Ada"}' },
    notes:
      'Functions: hello/run, hello/teapot, hello/fail, hello/slow.\n' +
      'A custom app, with any method and path: web/, web/echo, web/count (a stream).',
    watch() {},
    stop: () => demo.stop(),
  };
}

function folderStage(folder: Folder, io: Io): Stage {
  const { app } = folder;
  return {
    apps: [app],
    example: { path: `${app.name}/run`, parameters: '{}' },
    notes: `The functions of ${folder.entry}, reloaded when a file beside it changes.`,
    watch(service) {
      folder.watch(() => {
        io.stderr.write(`reloading ${app.name}\n`);
        service.reload(app);
      });
    },
    async stop() {
      folder.stop();
    },
  };
}

interface DevConfig {
  readonly data: string;
  readonly secret: string;
  readonly stage: Stage;
  readonly io: Io;
}

function devConfig({ data, secret, stage, io }: DevConfig): Config {
  const { AFTERWORD_LOG_LEVEL: level, ...others } = io.env;
  // The defaults: of the environment only what apps get, and the level of the log.
  const env = Object.fromEntries(Object.entries(others).filter(([name]) => !name.startsWith('AFTERWORD_')));
  // What the functions of a folder print is part of trying them.
  const shown = level ?? (stage.apps.some(app => app.place.kind === 'process') ? 'info' : 'warn');
  const { config } = loadConfig({ env: { ...env, AFTERWORD_LOG_LEVEL: shown }, cwd: data });
  const project = {
    id: DEV_PROJECT,
    jwt: { secret },
    standardWebhooks: false,
    requireSecret: false,
    maxPending: 100_000,
  };
  return {
    ...config,
    data,
    projects: new Map([[DEV_PROJECT, project]]),
    apps: new Map([[DEV_PROJECT, new Map(stage.apps.map(app => [app.name, app]))]]),
    webhooks: { ...config.webhooks, allowTargets: LOOPBACK },
  };
}

/** On the usual ports; where they are taken and none was asked for, on free ones. */
async function startService(
  { port }: Options,
  io: Io,
  config: Config,
): Promise<{ service: Service; base: string; dashboard: string }> {
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
      const at = await service.start();
      const base = `http://127.0.0.1:${at.listen!.port}`;
      return { service, base, dashboard: `http://127.0.0.1:${at.admin.port}/` };
    } catch (error) {
      if (!(error instanceof StartError) || !error.message.includes('cannot listen')) throw error;
      failure = error;
    }
  }
  throw failure;
}

interface Welcome {
  readonly base: string;
  readonly dashboard: string;
  readonly token: string;
  readonly target: URL;
  readonly stage: Stage;
  /** The data directory is where other commands in this folder look for it. */
  readonly beside: boolean;
}

function welcome(io: Io, { base, dashboard, token, target, stage, beside }: Welcome): void {
  const bold = (text: string): string => paint(io.stdout, 'bold', text);
  const { path, parameters } = stage.example;
  const url = base === DEFAULT_URL ? '' : ` --url ${base}`;
  const where = url + (beside ? '' : ` --token ${token}`);
  io.stdout.write(`
${bold('Afterword is running.')} Calls come in at ${base}, deliveries go to ${target.href}
See what becomes of them in the dashboard, ${dashboard}

${bold('Call a function')}; its answer is printed by curl, and its delivery here:

curl '${base}/v4/${DEV_PROJECT}/${path}?webhookEndpoint=${encodeURIComponent(target.href)}' \\
  -H 'Authorization: Bearer ${token}' \\
  -H 'X-Webhook-Secret: ${WEBHOOK_SECRET}' \\
  -H 'Content-Type: application/json' -d '${parameters}'

${bold('Or in the background')}, from this folder:

${io.program} call ${path} --async --wait --data '${parameters}' --webhook ${target.href} --secret ${WEBHOOK_SECRET}${where}

${stage.notes}
Deliveries received, signature checked:

`);
}
