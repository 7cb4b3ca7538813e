/**
 * `afterword verify`: checks the signature of a delivery that was captured somewhere, and tells precisely
 * what is wrong with it.
 */
import { buffer } from 'node:stream/consumers';
import { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { VerificationError, type VerifiedDelivery, verifyDelivery } from '../verify.ts';
import { durationArgument, jsonOption, readOptionFile } from './options.ts';
import { CheckFailed, type Io, paint, printJson } from './output.ts';

interface Options {
  readonly secret?: string;
  readonly secretFile?: string;
  readonly headers?: string;
  readonly requestId?: string;
  readonly timestamp?: string;
  readonly signature?: string;
  readonly body?: string;
  readonly tolerance?: number;
  readonly json?: true;
}

const NOTES = `
The secret is taken from --secret, --secret-file or AFTERWORD_WEBHOOK_SECRET; other users of the machine can
see what is written on a command line. The body must be the bytes that were received, unchanged.

Example:
  afterword verify --secret-file secret.txt --headers headers.txt --body body.json`;

export function verifyCommand(io: Io): Command {
  return new Command('verify')
    .description('Check the signature of a captured delivery.')
    .option('--secret <secret>', 'the X-Webhook-Secret of the call')
    .option('--secret-file <file>', 'a file that holds it; a line break at its end is left out')
    .option('--headers <file>', 'the headers as lines of "Name: value"')
    .option('--request-id <id>', 'the X-Request-Id header')
    .option('--timestamp <seconds>', 'the X-Service-Webhook-Timestamp header')
    .option('--signature <value>', 'the X-Service-Webhook-Signature header')
    .option('--body <file>', 'the body; standard input where it is left out')
    .option(
      '--tolerance <duration>',
      'refuse a timestamp that is further away from now',
      durationArgument('0s', '3650d'),
    )
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((options: Options) => check(options, io));
}

async function check(options: Options, io: Io): Promise<void> {
  const headers = headersOf(options, io);
  const secret = secretOf(options, io);
  const body =
    options.body === undefined ? await buffer(io.stdin) : readOptionFile(io, '--body', options.body);
  const tolerance = options.tolerance === undefined ? {} : { tolerance: options.tolerance / 1000 };
  try {
    report(await verifyDelivery({ headers, body, secret, ...tolerance }), options, io);
  } catch (error) {
    if (!(error instanceof VerificationError)) throw error;
    if (options.json) printJson(io, { ok: false, reason: error.reason, message: error.message });
    else io.stdout.write(`${paint(io.stdout, 'red', error.reason)}: ${error.message}\n`);
    throw new CheckFailed(error.reason);
  }
}

function report({ requestId, timestamp }: VerifiedDelivery, options: Options, io: Io): void {
  if (options.json) printJson(io, { ok: true, run_id: requestId, sent_at: timestamp.toISOString() });
  else
    io.stdout.write(`${paint(io.stdout, 'green', 'ok')}: ${requestId}, sent at ${timestamp.toISOString()}\n`);
}

/** Single options win over the file. */
function headersOf(options: Options, io: Io): Record<string, string> {
  const lines = options.headers === undefined ? '' : readOptionFile(io, '--headers', options.headers);
  return {
    ...parseHeaderLines(lines.toString('latin1')),
    ...(options.requestId !== undefined && { 'x-request-id': options.requestId }),
    ...(options.timestamp !== undefined && { 'x-service-webhook-timestamp': options.timestamp }),
    ...(options.signature !== undefined && { 'x-service-webhook-signature': options.signature }),
  };
}

/** Reads what curl -v or a log shows: lines that are no headers are passed over. */
export function parseHeaderLines(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const [, name, value] = /^[<>]?[ \t]*([\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) headers[name.toLowerCase()] = value;
  }
  return headers;
}

function secretOf(options: Options, io: Io): string | Uint8Array {
  const secret =
    options.secretFile === undefined
      ? (options.secret ?? io.env.AFTERWORD_WEBHOOK_SECRET ?? '')
      : withoutLineBreak(readOptionFile(io, '--secret-file', options.secretFile));
  if (secret.length > 0) return secret;
  throw new UsageError('a secret is needed: --secret, --secret-file or AFTERWORD_WEBHOOK_SECRET');
}

function withoutLineBreak(bytes: Buffer): Buffer {
  const end = bytes.at(-1) === 0x0a ? (bytes.at(-2) === 0x0d ? -2 : -1) : bytes.length;
  return bytes.subarray(0, end);
}
