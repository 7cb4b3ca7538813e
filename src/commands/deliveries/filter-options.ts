/**
 * The options by which commands find deliveries: the names that the API's lists, live stream and redelivery in
 * bulk have in common, checked by the same schemas before anything is asked.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { DELIVERY_STATES, FAILURE_REASONS, FILTER } from '../../api/delivery-filter.ts';

/** All but the project, which belongs to the token. */
const NAMES = ['state', 'reason', 'app', 'host', 'status', 'since', 'until'] as const;
type FilterName = (typeof NAMES)[number];

/** As they were given. */
export type DeliveryFilterOptions = { readonly [Name in FilterName]?: string };

export function addFilterOptions(command: Command): Command {
  return command
    .addOption(new Option('--state <state>', 'only those').choices(DELIVERY_STATES))
    .addOption(new Option('--reason <reason>', 'only those that failed so').choices(FAILURE_REASONS))
    .option('--app <name>', 'only those of this app', argumentOf('app'))
    .option('--host <host>', 'only those to this host, with its port if it has one', argumentOf('host'))
    .option('--status <status>', 'only those answered so last: 503, or 5xx', argumentOf('status'))
    .option('--since <time>', 'only those called since: 24h ago, or a time in ISO 8601', argumentOf('since'))
    .option('--until <time>', 'only those called before', argumentOf('until'));
}

function argumentOf(name: FilterName): (text: string) => string {
  return text => {
    const checked = FILTER[name].safeParse(text);
    if (checked.success) return text;
    throw new InvalidArgumentError(`It ${checked.error.issues[0]!.message}.`);
  };
}

/** What was given of them, as the API takes it. */
export function filterOf(options: DeliveryFilterOptions): Readonly<Record<string, string>> {
  return Object.fromEntries(
    NAMES.flatMap(name => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
}
