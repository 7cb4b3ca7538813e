/**
 * `afterword deliveries list`: deliveries by any combination of filters, the newest first.
 */
import { Command } from 'commander';
import { systemClock } from '../../clock.ts';
import { withClient } from '../client.ts';
import { allOption, jsonOption, limitOption } from '../options.ts';
import type { Io } from '../output.ts';
import { pagesOf, printPages } from '../pages.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from '../service-options.ts';
import type { DeliveryFacts } from './answer.ts';
import { addFilterOptions, type DeliveryFilterOptions, filterOf } from './filter-options.ts';
import { deliveryColumns } from './view.ts';

interface Options extends ServiceOptions, DeliveryFilterOptions {
  readonly limit: number;
  readonly all?: true;
  readonly json?: true;
}

const NOTES = `${SERVICE_NOTES}

Examples:
  afterword deliveries list --state failed --status 5xx --since 24h
  afterword deliveries list --host hooks.example.com:8443 --limit 200
  afterword deliveries list --reason rejected --all --json | jq -r .run_id`;

export function listCommand(io: Io): Command {
  const command = new Command('list').description(
    'List deliveries, the newest first: a table on a terminal, otherwise lines of JSON.',
  );
  addFilterOptions(command).addOption(limitOption()).addOption(allOption());
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((options: Options) => list(options, io));
}

async function list(options: Options, io: Io): Promise<void> {
  const { limit, all, json } = options;
  const listing = { name: 'deliveries', query: filterOf(options) } as const;
  await withClient(await serviceOf(options, io), client => {
    const pages = pagesOf<DeliveryFacts>(client, listing, all ? Number.POSITIVE_INFINITY : limit);
    return printPages(io, pages, { columns: deliveryColumns(systemClock), json: json === true });
  });
}
