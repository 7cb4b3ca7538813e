/**
 * The effective configuration, as the rest of the program gets it: names resolved, durations in
 * milliseconds, sizes in bytes, files read.
 */

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface JwtKeys {
  /** HS256 with this secret. */
  readonly secret?: string;
  /** RS256, ES256 or EdDSA with this public key: the text of a PEM or JWK file. */
  readonly publicKey?: string;
  /** RS256, ES256 or EdDSA with the keys found there. */
  readonly jwksUrl?: URL;
  readonly issuer?: string;
  readonly audience?: string;
}

export interface ProjectConfig {
  readonly id: string;
  readonly jwt: JwtKeys;
  readonly standardWebhooks: boolean;
  readonly requireSecret: boolean;
  readonly maxPending: number;
}

export type Runtime = 'cortex' | 'custom';

/** What runs in an app's process: functions by the runner of their language, or any server. */
export type Program =
  | { readonly kind: 'node'; readonly entry: string }
  | { readonly kind: 'python'; readonly entry: string; readonly python: string }
  | {
      readonly kind: 'command';
      readonly command: readonly string[];
      /** Of the first replica, the others following; any free one where absent. Given as `PORT`. */
      readonly port?: number;
      /** Path that answers 2xx once the server is ready; where absent, it is ready when it can be reached. */
      readonly health?: string;
    };

export interface ProcessConfig {
  readonly program: Program;
  /** Absolute path of the working directory. */
  readonly cwd: string;
  /** Besides what the service's own environment passes on. */
  readonly env: Readonly<Record<string, string>>;
  readonly replicas: number;
  /** Calls at once in one replica. */
  readonly concurrency: number;
  /** Calls of the app that may wait for a place. */
  readonly queue: number;
  /** When it is started. */
  readonly start: 'boot' | 'call';
}

/** Where an app is: served elsewhere, or run here. */
export type AppPlace =
  | { readonly kind: 'url'; readonly url: URL }
  | { readonly kind: 'process'; readonly process: ProcessConfig };

export interface AppConfig {
  readonly projectId: string;
  readonly name: string;
  readonly runtime: Runtime;
  readonly place: AppPlace;
  /** The app gets the caller's `Authorization` header. */
  readonly forwardAuthorization: boolean;
}

export interface WebhooksConfig {
  readonly attemptTimeout: number;
  readonly maxBody: number;
  readonly commitWait: number;
  readonly concurrency: number;
  readonly perTarget: number;
  /** CIDRs, addresses or host names that are open on purpose. */
  readonly allowTargets: readonly string[];
  readonly retention: number;
}

export interface Config {
  readonly listen: Address;
  readonly admin: Address;
  readonly adminToken?: string;
  /** Absolute path of the data directory. */
  readonly data: string;
  /** 32 bytes, or absent: then one is made once and kept in the data directory. */
  readonly encryptionKey?: Uint8Array;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly projects: ReadonlyMap<string, ProjectConfig>;
  /** By project, then by name. */
  readonly apps: ReadonlyMap<string, ReadonlyMap<string, AppConfig>>;
  readonly webhooks: WebhooksConfig;
  readonly appTimeout: number;
  /** What the processes of apps get of the service's environment. */
  readonly appEnvironment: Readonly<Record<string, string>>;
}
