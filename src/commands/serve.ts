/**
 * `afterword serve`: runs the service until it is asked to stop. The first signal lets what is under way
 * end; a second one ends the process at once. With several workers, SIGHUP replaces them.
 */
import { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { createLogger } from '../log.ts';
import { createService, type Service, type ServiceOptions } from '../service.ts';
import { packageVersion } from '../version.ts';
import { configOption } from './options.ts';
import { type Io, printWarning } from './output.ts';

const NOTES = `
Examples:
  afterword serve --config afterword.yaml
  AFTERWORD_LOG_LEVEL=warn afterword serve`;

export function serveCommand(io: Io): Command {
  return new Command('serve')
    .description('Run the service.')
    .addOption(configOption())
    .option('--json', 'log in JSON, on a terminal too')
    .addHelpText('after', NOTES)
    .action((options: { config?: string; json?: true }) => serve(options, io));
}

async function serve(options: { config?: string; json?: true }, io: Io): Promise<void> {
  const stopped = io.untilStopped();
  const { config, warnings } = loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  for (const warning of warnings) printWarning(io, warning);
  const pretty = options.json !== true && 'isTTY' in io.stderr && io.stderr.isTTY === true;
  const several = config.workers > 1;
  const log = createLogger({ level: config.logLevel, pretty, shared: several });
  const parts = { config, version: packageVersion(), log };
  const service = several ? await createWorkers({ ...parts, pretty }, io) : createService(parts);
  await service.start();
  await stopped;
  await service.stop();
  log.info('stopped');
  log.flush();
}

/** What belongs to several processes is loaded only where there are several. */
async function createWorkers(options: ServiceOptions & { pretty: boolean }, io: Io): Promise<Service> {
  const { createPrimary } = await import('../workers/primary.ts');
  const primary = createPrimary(options);
  io.onHangUp(() => void primary.replaceWorkers());
  return primary;
}
