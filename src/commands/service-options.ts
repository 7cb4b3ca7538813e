/**
 * Which service a command speaks to, as what project: the options that all such commands share, and the
 * variables that stand in for them.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { decodeJwt } from 'jose';
import { UsageError } from '../errors.ts';
import { devTokenHere } from './dev-token.ts';
import { httpUrlArgument } from './options.ts';
import type { Io } from './output.ts';

export const DEFAULT_URL = 'http://127.0.0.1:8080';

export interface ServiceOptions {
  readonly url?: URL;
  readonly project?: string;
  readonly token?: string;
}

export interface ServiceAddress {
  readonly url: URL;
  readonly projectId: string;
  readonly token: string;
}

export const SERVICE_NOTES = `
The service is found by --url or AFTERWORD_URL. The token is that of --token, AFTERWORD_TOKEN, or the file that
AFTERWORD_TOKEN_FILE names; other users of the machine can see what is written on a command line. In a folder
where 'afterword dev' runs, none is needed.`;

export function addServiceOptions(command: Command): Command {
  return command
    .option('--url <url>', `where the service is (default: ${DEFAULT_URL})`, httpUrlArgument)
    .option('-p, --project <id>', "the project (default: the token's)")
    .option('--token <token>', 'a token of the project');
}

export async function serviceOf(options: ServiceOptions, io: Io): Promise<ServiceAddress> {
  const url = options.url ?? urlOf(io.env.AFTERWORD_URL ?? DEFAULT_URL);
  const token = options.token ?? tokenOf(io) ?? (isLoopback(url) ? await devTokenHere(io) : undefined);
  if (token === undefined) {
    throw new UsageError('a token is needed: --token, AFTERWORD_TOKEN or AFTERWORD_TOKEN_FILE');
  }
  if (!/^[\x21-\x7e]+$/.test(token)) throw new UsageError('the token has characters that no token has');
  return { url, token, projectId: options.project ?? io.env.AFTERWORD_PROJECT ?? projectIn(token) };
}

function urlOf(text: string): URL {
  try {
    return httpUrlArgument(text);
  } catch (error) {
    throw new UsageError(`AFTERWORD_URL: ${(error as Error).message}`);
  }
}

function tokenOf({ env, cwd }: Io): string | undefined {
  const { AFTERWORD_TOKEN: token, AFTERWORD_TOKEN_FILE: file } = env;
  if (file === undefined) return token;
  if (token !== undefined) throw new UsageError('both AFTERWORD_TOKEN and AFTERWORD_TOKEN_FILE are set');
  try {
    return readFileSync(resolve(cwd, file), 'utf8').trim();
  } catch (error) {
    throw new UsageError(`AFTERWORD_TOKEN_FILE: ${(error as Error).message}`);
  }
}

// A token of `dev` is none for a service elsewhere.
function isLoopback({ hostname }: URL): boolean {
  return /^(?:127\..*|localhost|\[::1\])$/.test(hostname);
}

/** Read without checking it: the service does that. */
function projectIn(token: string): string {
  const { project_id: id } = claimsOf(token);
  if (typeof id === 'string') return id;
  throw new UsageError('a project is needed: --project, AFTERWORD_PROJECT, or a token that names one');
}

function claimsOf(token: string): Readonly<Record<string, unknown>> {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}
