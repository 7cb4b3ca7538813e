/**
 * `afterword listen`: a receiver on this machine that checks deliveries, prints them and answers as told.
 */
import { Command } from 'commander';
import { systemClock } from '../clock.ts';
import { createReceiver } from '../receiver.ts';
import { durationArgument, httpUrlArgument, integerArgument } from './options.ts';
import type { Io } from './output.ts';
import { printReceived, printReceivedJson } from './received.ts';

interface Options {
  readonly host: string;
  readonly port: number;
  readonly secret: readonly string[];
  readonly forwardTo?: URL;
  readonly status: number;
  readonly delay: number;
  readonly json?: true;
}

const NOTES = `
Signatures are checked where a secret is known: --secret, given several times for several, or
AFTERWORD_WEBHOOK_SECRET. Deliveries are reported and never refused for their signature. With --forward-to,
a server that cannot be reached looks to the sender as it would directly: like a network error.

Examples:
  afterword listen --secret s3cret
  afterword listen --status 404 --delay 2s             see how deliveries are retried
  afterword listen --forward-to http://127.0.0.1:3000/hook`;

export function listenCommand(io: Io): Command {
  return new Command('listen')
    .description('Receive deliveries on this machine, check them and print them.')
    .option('--port <number>', 'the port, 0 for any free one', integerArgument(0, 65_535), 9000)
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .option('--secret <secret>', 'the X-Webhook-Secret of the calls', collect, [])
    .option(
      '--forward-to <url>',
      'pass deliveries on to this address and answer with its status',
      httpUrlArgument,
    )
    .option('--status <code>', 'the status to answer with', integerArgument(200, 599), 200)
    .option('--delay <duration>', 'how long to wait before the answer', durationArgument('0s', '1h'), 0)
    .option('--json', 'print one line of JSON for each delivery')
    .addHelpText('after', NOTES)
    .action((options: Options) => listen(options, io));
}

function collect(value: string, values: readonly string[]): readonly string[] {
  return [...values, value];
}

async function listen(options: Options, io: Io): Promise<void> {
  const stopped = io.untilStopped();
  const { host, port, status, forwardTo } = options;
  const print = options.json ? printReceivedJson : printReceived;
  const receiver = createReceiver({
    host,
    port,
    status,
    clock: systemClock,
    delayMs: options.delay,
    secrets: secretsOf(options, io),
    ...(forwardTo !== undefined && { forwardTo }),
    onDelivery: delivery => print(io, delivery),
  });
  const address = await receiver.start();
  io.stderr.write(`listening on ${address.href}, as webhookEndpoint=${encodeURIComponent(address.href)}\n`);
  await stopped;
  await receiver.stop();
}

function secretsOf({ secret }: Options, { env }: Io): readonly string[] {
  return [...secret, env.AFTERWORD_WEBHOOK_SECRET ?? ''].filter(each => each !== '');
}
