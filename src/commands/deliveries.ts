/**
 * `afterword deliveries`: what became of a project's deliveries, and what to do about them.
 */
import { Command } from 'commander';
import { cancelCommand } from './deliveries/cancel.ts';
import { listCommand } from './deliveries/list.ts';
import { redeliverCommand } from './deliveries/redeliver.ts';
import { showCommand } from './deliveries/show.ts';
import { tailCommand } from './deliveries/tail.ts';
import type { Io } from './output.ts';
import { SERVICE_NOTES } from './service-options.ts';

const NOTES = `${SERVICE_NOTES}

Examples:
  afterword deliveries list --state failed --since 24h
  afterword deliveries show 0192f1d2-…
  afterword deliveries redeliver --state failed --host hooks.example.com --since 6h
  afterword deliveries tail --forward-to http://127.0.0.1:3000/hook`;

export function deliveriesCommand(io: Io): Command {
  return new Command('deliveries')
    .description('Look at deliveries, send them again, cancel and follow them.')
    .addCommand(listCommand(io))
    .addCommand(showCommand(io))
    .addCommand(redeliverCommand(io))
    .addCommand(cancelCommand(io))
    .addCommand(tailCommand(io))
    .addHelpText('after', NOTES);
}
