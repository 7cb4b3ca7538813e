/**
 * `afterword serve`: runs the service until it is asked to stop. The first signal lets what is under way
 * end; a second one ends the process at once.
 */
import { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { createLogger } from '../log.ts';
import { createService } from '../service.ts';
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
  const log = createLogger({ level: config.logLevel, pretty });
  const service = createService({ config, version: packageVersion(), log });
  await service.start();
  await stopped;
  await service.stop();
  log.info('stopped');
  log.flush();
}
