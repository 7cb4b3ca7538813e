/**
 * `afterword deliveries tail`: changes of deliveries as they happen, and, where it is asked for, the deliveries
 * themselves brought to a server on this machine.
 */
import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { systemClock } from '../../clock.ts';
import { readTargetUrl, type TargetUrl } from '../../delivery/target-url.ts';
import { UsageError } from '../../errors.ts';
import { packageVersion } from '../../version.ts';
import { type Client, withClient } from '../client.ts';
import { readableTime } from '../elapsed.ts';
import { shortened } from '../layout.ts';
import { jsonOption, targetArgument } from '../options.ts';
import { type Io, isTerminal, paint, printable, printJson } from '../output.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from '../service-options.ts';
import { followDeliveries } from './feed.ts';
import { addFilterOptions, type DeliveryFilterOptions, filterOf } from './filter-options.ts';
import { createForwarder, type Forwarded, type Forwarder } from './forward.ts';
import { clockTime, printChange } from './view.ts';

interface Options extends ServiceOptions, DeliveryFilterOptions {
  readonly forwardTo?: string;
  readonly secret?: string;
  readonly json?: true;
}

const EXCERPT_WIDTH = 100;

const NOTES = `${SERVICE_NOTES}

After a cut it connects again, and tells what has changed meanwhile; a change may then be told twice. With
--forward-to, each round of each delivery is also sent to that address once, as soon as it is seen, with the
headers that a delivery has, and signed with --secret, AFTERWORD_WEBHOOK_SECRET, or a secret made for the time.
What is answered there is printed; the service does not know of it.

Examples:
  afterword deliveries tail
  afterword deliveries tail --state failed --json | jq -r .target
  afterword deliveries tail --app hello --forward-to http://127.0.0.1:3000/hook --secret s3cret`;

export function tailCommand(io: Io): Command {
  const command = new Command('tail')
    .description('Follow deliveries as they change: a line each, on a terminal; otherwise lines of JSON.')
    .option('--forward-to <url>', 'send each delivery to this address as well', targetArgument)
    .option('--secret <secret>', 'sign what is forwarded with it');
  addFilterOptions(command);
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((options: Options) => tail(options, io));
}

async function tail(options: Options, io: Io): Promise<void> {
  if (options.secret !== undefined && options.forwardTo === undefined)
    throw new UsageError('--secret is for --forward-to');
  const stopping = new AbortController();
  void io.untilStopped().then(() => stopping.abort());
  const { signal } = stopping;
  const readable = options.json !== true && isTerminal(io.stdout);
  const note = (text: string): void => void io.stderr.write(`${text}\n`);
  await withClient(await serviceOf(options, io), async client => {
    const forwarder = forwarderFor({ client, options, signal, readable, io });
    const feed = { client, filter: filterOf(options), clock: systemClock, signal, note };
    try {
      for await (const delivery of followDeliveries(feed)) {
        if (readable) printChange(io, delivery, systemClock.now());
        else printJson(io, delivery);
        await forwarder?.take(delivery);
      }
    } finally {
      await forwarder?.close();
    }
  });
}

interface Forwarding {
  readonly client: Client;
  readonly options: Options;
  readonly signal: AbortSignal;
  readonly readable: boolean;
  readonly io: Io;
}

function forwarderFor({ client, options, signal, readable, io }: Forwarding): Forwarder | undefined {
  if (options.forwardTo === undefined) return undefined;
  // It was checked as an option.
  const to = readTargetUrl(options.forwardTo) as TargetUrl;
  const print = readable ? printForwarded : printForwardedJson;
  return createForwarder({
    client,
    to,
    secret: secretOf(options, io),
    userAgent: `Afterword/${packageVersion()}`,
    clock: systemClock,
    signal,
    tell: forwarded => print(io, forwarded, to),
  });
}

function secretOf({ secret }: Options, io: Io): string {
  const given = secret ?? io.env.AFTERWORD_WEBHOOK_SECRET ?? '';
  if (given !== '') return given;
  const made = randomBytes(24).toString('base64url');
  io.stderr.write(`deliveries are signed with the secret ${made}\n`);
  return made;
}

function printForwarded(io: Io, { runId, answer }: Forwarded, { url }: TargetUrl): void {
  const good = 'status' in answer && answer.status >= 200 && answer.status < 300;
  const told = [
    paint(io.stdout, 'dim', clockTime(systemClock.now())),
    runId,
    `→ ${printable(url.href)}`,
    paint(io.stdout, good ? 'green' : 'red', String('status' in answer ? answer.status : answer.code)),
    ...('status' in answer
      ? [readableTime(answer.totalMs), printable(firstLine(answer.excerpt))]
      : [printable(answer.meaning)]),
  ];
  io.stdout.write(`${told.filter(each => each !== '').join('  ')}\n`);
}

function firstLine(text: string): string {
  return shortened(text.trim().split(/[\r\n]/, 1)[0]!, EXCERPT_WIDTH);
}

function printForwardedJson(io: Io, { runId, round, answer }: Forwarded, { url }: TargetUrl): void {
  const outcome =
    'status' in answer
      ? {
          status: answer.status,
          total_ms: Math.round(answer.totalMs * 1000) / 1000,
          excerpt: firstLine(answer.excerpt),
        }
      : { error: answer };
  printJson(io, { run_id: runId, round, forwarded_to: url.href, ...outcome });
}
