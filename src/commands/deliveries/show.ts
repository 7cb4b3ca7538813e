/**
 * `afterword deliveries show`: all that is known of one delivery.
 */
import { Command } from 'commander';
import { systemClock } from '../../clock.ts';
import { told } from '../ask.ts';
import { answered, type Client, pour, withClient } from '../client.ts';
import { jsonOption } from '../options.ts';
import { Failed, type Io, isTerminal } from '../output.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from '../service-options.ts';
import { openDelivery, readDelivery, readWithBody, runIdArgument } from './answer.ts';
import { printDetails, printRequest } from './detail-view.ts';

interface Options extends ServiceOptions {
  readonly body?: true;
  readonly json?: true;
}

const NOTES = `${SERVICE_NOTES}

Examples:
  afterword deliveries show 0192f1d2-…
  afterword deliveries show 0192f1d2-… --body
  afterword deliveries show 0192f1d2-… --body --json | jq .request.body.result`;

export function showCommand(io: Io): Command {
  const command = new Command('show')
    .description('Show a delivery with its attempts; otherwise than on a terminal as JSON.')
    .argument('<run_id>', 'the id of the run', runIdArgument)
    .option('--body', 'with the request that is sent');
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action(async (runId: string, options: Options) => {
      const readable = options.json !== true && isTerminal(io.stdout);
      const print = readable ? printReadable : printAsItCame;
      await withClient(await serviceOf(options, io), client => print(client, runId, options, io));
    });
}

async function printAsItCame(client: Client, runId: string, { body }: Options, io: Io): Promise<void> {
  const answer = answered(await openDelivery(client, runId, { body: body === true }));
  await pour(answer.body, io.stdout);
  io.stdout.write('\n');
}

async function printReadable(client: Client, runId: string, { body }: Options, io: Io): Promise<void> {
  if (body) {
    const delivery = await readWithBody(client, runId);
    if (delivery.kind === 'fault') throw new Failed(delivery.message);
    printDetails(io, delivery.details, systemClock.now());
    printRequest(io, delivery);
  } else {
    printDetails(io, told(await readDelivery(client, runId)), systemClock.now());
  }
}
