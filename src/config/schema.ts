/**
 * The keys of the configuration, each with its check and its default: one flat table per map of the file.
 */
import { z } from 'zod';
import { parseAddress } from './address.ts';
import {
  appUrl,
  choice,
  databaseUrl,
  duration,
  encryptionKeys,
  flag,
  integer,
  jwksUrl,
  parsed,
  size,
  targets,
  text,
  variables,
  words,
  workers,
} from './values.ts';

export type Block = Readonly<Record<string, z.ZodType>>;

/** What the checks of a table give; a key that may be absent is absent, never undefined. */
export type Checked<B extends Block> = {
  [K in keyof B as undefined extends z.output<B[K]> ? never : K]: z.output<B[K]>;
} & {
  [K in keyof B as undefined extends z.output<B[K]> ? K : never]?: Exclude<z.output<B[K]>, undefined>;
};

/** Names of projects and apps; none starts with `_`, which is kept for the service's own paths. */
export const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
export const NAME_RULE = 'letters, digits, `-` and `_`, at most 63, starting with a letter or digit';

const address = () => parsed('host:port, such as 127.0.0.1:8080, "[::1]:8080" or :8080', parseAddress);

export const TOP = {
  listen: address().prefault('127.0.0.1:8080'),
  admin: address().prefault('127.0.0.1:8081'),
  adminToken: text('visible ASCII characters without spaces, in quotes', /^[\x21-\x7e]+$/).optional(),
  data: text().prefault('./data'),
  database: databaseUrl().optional(),
  databasePassword: text().optional(),
  databaseConnections: integer(1, 1_000).prefault(8),
  role: choice(['all', 'gateway', 'dispatcher']).prefault('all'),
  workers: workers(64).prefault(1),
  encryptionKey: encryptionKeys().optional(),
  logLevel: choice(['debug', 'info', 'warn', 'error', 'silent']).prefault('info'),
  appTimeout: duration('10ms', '24h').prefault('15m'),
} satisfies Block;

export const WEBHOOKS = {
  attemptTimeout: duration('100ms', '5m').prefault('15s'),
  maxBody: size('1KiB', '1GiB').prefault('16MiB'),
  commitWait: duration('0ms', '10s').prefault('100ms'),
  concurrency: integer(1, 100_000).prefault(256),
  perTarget: integer(1, 100_000).prefault(32),
  allowTargets: targets().prefault([]),
  retention: duration('1s', '3650d').prefault('30d'),
} satisfies Block;

export const ASYNC = {
  timeout: duration('1s', '12h').prefault('15m'),
  maxStarts: integer(1, 100).prefault(2),
  maxRequest: size('1KiB', '1GiB').prefault('16MiB'),
  retention: duration('1s', '3650d').prefault('1d'),
} satisfies Block;

/** `jwt` is a map of its own, checked by `JWT`. */
export const PROJECT = {
  standardWebhooks: flag().prefault(false),
  requireSecret: flag().prefault(false),
  maxPending: integer(1, 1_000_000_000).prefault(100_000),
} satisfies Block;

/** Exactly one of these says how a project's tokens are checked. */
export const JWT_KEYS = ['secret', 'publicKey', 'jwksUrl'] as const;

export const JWT = {
  secret: text().optional(),
  publicKey: text('the path of a PEM or JWK file').optional(),
  jwksUrl: jwksUrl().optional(),
  issuer: text().optional(),
  audience: text().optional(),
} satisfies Block;

/** Exactly one of these says where an app is. */
export const APP_PLACES = ['url', 'entry', 'command'] as const;

/** `concurrency` has a default by its place. */
export const APP = {
  runtime: choice(['cortex', 'custom']),
  url: appUrl().optional(),
  entry: text("the path of the functions' file, such as ./main.py").optional(),
  command: words().optional(),
  forwardAuthorization: flag().prefault(false),
  concurrency: integer(1, 100_000).optional(),
} satisfies Block;

/** Of apps that run here. */
export const HOSTED_APP = {
  port: integer(1, 65_535).optional(),
  health: text('a path that starts with /', /^\/\S*$/).optional(),
  python: text('a command, such as .venv/bin/python').prefault('python3'),
  replicas: integer(1, 1_000).prefault(1),
  queue: integer(0, 100_000).prefault(100),
  start: choice(['boot', 'call']).prefault('boot'),
  cwd: text().optional(),
  env: variables().optional(),
} satisfies Block;

/** The maps of fixed keys below the top level. */
export const NESTED = { webhooks: WEBHOOKS, async: ASYNC } satisfies Record<string, Block>;
/** The maps whose keys are names that the operator chooses. */
export const NAMED = ['projects', 'apps'] as const;
