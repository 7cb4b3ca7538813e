/**
 * `afterword deliveries cancel`: ends deliveries that are pending.
 */
import { Command } from 'commander';
import type { Told } from '../ask.ts';
import { withClient } from '../client.ts';
import { checkRefused, toEach } from '../each-run.ts';
import { jsonOption } from '../options.ts';
import { type Io, printJson } from '../output.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from '../service-options.ts';
import { cancelDelivery, type DeliveryDetails, runIdsArgument } from './answer.ts';
import { standingOf } from './view.ts';

interface Options extends ServiceOptions {
  readonly json?: true;
}

const NOTES = `${SERVICE_NOTES}

An attempt that is under way may still reach its receiver. One that has ended cannot be cancelled; the others
are, and the exit code is then 1.

Examples:
  afterword deliveries cancel 0192f1d2-… 0192f1d3-…
  afterword deliveries list --state pending --app hello --json | jq -r .run_id | xargs afterword deliveries cancel`;

export function cancelCommand(io: Io): Command {
  const command = new Command('cancel')
    .description('Cancel pending deliveries, and print the state of each.')
    .argument('<run_id...>', 'the ids of the runs', runIdsArgument);
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((runIds: string[], options: Options) => cancel(runIds, options, io));
}

async function cancel(runIds: readonly string[], options: Options, io: Io): Promise<void> {
  const tell = (runId: string, { value }: Told<DeliveryDetails>): void => {
    if (options.json) printJson(io, { run_id: runId, state: value.state });
    else io.stdout.write(`${runId} ${standingOf(value)}\n`);
  };
  await withClient(await serviceOf(options, io), async client => {
    const act = (runId: string) => cancelDelivery(client, runId);
    checkRefused(await toEach(runIds, { act, tell }, io), 'cancelled');
  });
}
