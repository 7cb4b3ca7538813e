/**
 * `afterword call`: calls an app as any caller would, and prints its answer; or leaves the call to the
 * service (`--async`), and waits for the end of the run where that is asked for.
 */
import { Readable } from 'node:stream';
import { Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.ts';
import { UsageError } from '../errors.ts';
import { answered, type Client, type ClientRequest, pour, withClient } from './client.ts';
import { followRun } from './follow.ts';
import { jsonOption, readOptionFile, timeoutOption } from './options.ts';
import { Failed, type Io, isTerminal, printJson } from './output.ts';
import { failureOf, printRun } from './run-view.ts';
import { addServiceOptions, SERVICE_NOTES, type ServiceOptions, serviceOf } from './service-options.ts';

interface Options extends ServiceOptions {
  readonly data?: string;
  readonly method: string;
  readonly header: readonly (readonly [name: string, value: string])[];
  readonly async?: true;
  readonly wait?: true;
  readonly webhook?: string;
  readonly secret?: string;
  readonly idempotencyKey?: string;
  readonly timeout: number;
  readonly json?: true;
}

const NOTES = `${SERVICE_NOTES}

The exit code is 0 where the answer's status is below 400, or the run succeeded, and 1 otherwise. With --async
alone it is 0 once the service has the run. Ctrl-C while it waits does not cancel the run.

Examples:
  afterword call hello/run --data '{"name":"Ada"}'
  afterword call hello/run --data @parameters.json --async --wait
  afterword call hello/run --async --webhook https://hooks.example.com/done --secret s3cret
  afterword call 'web/items?page=2' --method GET --header 'Accept: text/csv'
  produce | afterword call web/upload --data - --header 'Content-Type: text/plain'`;

export function callCommand(io: Io): Command {
  const command = new Command('call')
    .description('Call an app, at once or in the background.')
    .argument('<app/function>', 'the app and its function; of a custom app a path, and a query')
    .option('--data <data>', 'the body: JSON, or @file, or - for standard input')
    .option('--async', 'leave the call to the service, and print the id of its run')
    .option('--wait', 'with --async (which it implies): wait for the end of the run, and print it')
    .option('--webhook <url>', 'deliver the answer there as well')
    .option('--secret <secret>', 'sign the delivery with it (or AFTERWORD_WEBHOOK_SECRET)')
    .option('--idempotency-key <key>', 'with --async: within a day, the same key is the same run')
    .addOption(timeoutOption())
    .option('--method <method>', 'the method', methodArgument, 'POST')
    .option('--header <line>', "a header as 'Name: value'; can be given several times", headerArgument, []);
  return addServiceOptions(command)
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((path: string, options: Options) => call(path, options, io));
}

const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
/** Made here, from the request itself. */
const OWN = /^(?:authorization|connection|content-length|expect|host|keep-alive|transfer-encoding|upgrade)$/i;

function methodArgument(text: string): string {
  const method = text.toUpperCase();
  if (TOKEN.test(method) && method !== 'CONNECT') return method;
  throw new InvalidArgumentError('It must be a method such as GET or PUT.');
}

function headerArgument(line: string, headers: Options['header']): Options['header'] {
  const [, name = '', value = ''] = /^([^:]*):[ \t]*(.*?)[ \t]*$/s.exec(line) ?? [];
  if (!TOKEN.test(name) || !isHeaderValue(value)) {
    throw new InvalidArgumentError("It must be a line such as 'Accept: text/csv'.");
  }
  if (OWN.test(name)) throw new InvalidArgumentError(`${name} is made by the command itself.`);
  return [...headers, [name, value]];
}

function isHeaderValue(text: string): boolean {
  return !/[^\t\P{Cc}]/u.test(text);
}

async function call(path: string, options: Options, io: Io): Promise<void> {
  const later = options.async === true || options.wait === true;
  if (options.idempotencyKey !== undefined && !later) {
    throw new UsageError('--idempotency-key is for asynchronous calls: add --async');
  }
  const request = requestOf(path, options, io);
  await withClient(await serviceOf(options, io), client =>
    later ? callLater(client, request, options, io) : callNow(client, request, io),
  );
}

function requestOf(path: string, options: Options, io: Io): ClientRequest {
  const { method, timeout: timeoutMs } = options;
  const body = bodyOf(options.data, io);
  return {
    method,
    path: pathOf(path, options),
    headers: headersOf(options, io).map(onTheWire),
    timeoutMs,
    ...(body !== undefined && { body }),
  };
}

function bodyOf(data: string | undefined, io: Io): ClientRequest['body'] {
  if (data === '-') return Readable.from(io.stdin);
  return data?.startsWith('@') ? readOptionFile(io, '--data', data.slice(1)) : data;
}

function pathOf(path: string, { async: later, wait, webhook }: Options): string {
  if (!/^[A-Za-z0-9]/.test(path)) throw new UsageError(`${path} is no app: it is called as app/function`);
  const parameters = [
    later || wait ? ['async=true'] : [],
    webhook === undefined ? [] : [`webhookEndpoint=${encodeURIComponent(webhook.toWellFormed())}`],
  ].flat();
  // What a request line cannot hold; everything else goes as it was written.
  const written = path.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
  if (parameters.length === 0) return `/${written}`;
  return `/${written}${written.includes('?') ? '&' : '?'}${parameters.join('&')}`;
}

/** Flat list of names and values. */
function headersOf({ header, data, webhook, secret, idempotencyKey }: Options, io: Io): string[] {
  const typed = header.some(([name]) => name.toLowerCase() === 'content-type');
  const signedBy = secret ?? (webhook === undefined ? undefined : io.env.AFTERWORD_WEBHOOK_SECRET);
  const made: readonly (readonly [string, string | undefined])[] = [
    ['Content-Type', data === undefined || typed ? undefined : 'application/json'],
    ['X-Webhook-Secret', signedBy],
    ['Idempotency-Key', idempotencyKey],
  ];
  for (const [name, value = ''] of made) {
    if (!isHeaderValue(value)) throw new UsageError(`the value for ${name} has control characters`);
  }
  return [...made, ...header].flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
}

// Node writes each character of a header as one byte; what is meant are those of UTF-8.
function onTheWire(text: string): string {
  return Buffer.from(text).toString('latin1');
}

async function callNow(client: Client, request: ClientRequest, io: Io): Promise<void> {
  const { status, headers, body } = answered(await client.send(request));
  const last = await pour(body, io.stdout);
  if (isTerminal(io.stdout) && last !== undefined && last !== 0x0a) io.stdout.write('\n');
  if (status >= 400)
    throw new Failed(`the answer has status ${status} (run ${String(headers['x-request-id'])})`);
}

async function callLater(client: Client, request: ClientRequest, options: Options, io: Io): Promise<void> {
  const { status, headers } = answered(await client.send(request));
  const runId = headers['x-request-id'];
  if (status !== 202 || typeof runId !== 'string') {
    throw new Failed(`status ${status} in place of 202: the call was not taken as an asynchronous one`);
  }
  if (options.wait) await waitFor(runId, client, options, io);
  else if (options.json) printJson(io, { run_id: runId });
  else io.stdout.write(`${runId}\n`);
}

async function waitFor(runId: string, client: Client, options: Options, io: Io): Promise<void> {
  // A terminal has it in the line that is drawn over.
  if (!isTerminal(io.stderr)) io.stderr.write(`run ${runId}\n`);
  const run = await followRun({ client, runId, timeoutMs: options.timeout, clock: systemClock, io });
  await printRun(io, run, { json: options.json === true, now: systemClock.now() });
  if (run.facts.state !== 'succeeded') throw failureOf(run.facts);
}
