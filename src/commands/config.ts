/**
 * `afterword config check`: tells what a configuration means, or everything that is wrong with it.
 */
import { Command } from 'commander';
import { describeConfig, describeConfigData } from '../config/describe.ts';
import { loadConfig } from '../config/load.ts';
import { configOption, jsonOption } from './options.ts';
import { type Io, printJson, printWarning } from './output.ts';

interface Options {
  readonly config?: string;
  readonly json?: true;
}

const NOTES = `
Examples:
  afterword config check --config prod.yaml
  AFTERWORD_LISTEN=0.0.0.0:80 afterword config check --json`;

export function configCommand(io: Io): Command {
  const check = new Command('check')
    .description('Check the configuration and print it as it takes effect, without its secrets.')
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((options: Options) => checkConfig(options, io));
  return new Command('config')
    .description('Look at the configuration.')
    .addCommand(check)
    .addHelpText('after', NOTES);
}

function checkConfig(options: Options, io: Io): void {
  const loaded = loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  for (const warning of loaded.warnings) printWarning(io, warning);
  if (options.json) printJson(io, describeConfigData(loaded));
  else io.stdout.write(describeConfig(loaded));
}
