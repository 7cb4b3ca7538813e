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
  | {
      readonly kind: 'url';
      readonly url: URL;
      /** Asynchronous calls of it at once, over all nodes. */
      readonly concurrency: number;
    }
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

export interface AsyncConfig {
  /** From the moment that a run's turn has come. */
  readonly timeout: number;
  readonly maxStarts: number;
  /** Bytes of a request's body. */
  readonly maxRequest: number;
  readonly retention: number;
}

/** What a node does: takes calls, carries out runs and sends deliveries, or both. */
export type Role = 'all' | 'gateway' | 'dispatcher';

/** How the connections to the database are encrypted, as pg takes it. */
export interface DatabaseTls {
  /** False: the server's certificate is not looked at. */
  readonly rejectUnauthorized: boolean;
  /** PEM; Node's own roots where absent. */
  readonly ca?: string;
  /** PEM, this node's own certificate and its key. */
  readonly cert?: string;
  readonly key?: string;
  /** Given where the certificate may be for another name. */
  readonly checkServerIdentity?: () => undefined;
}

export interface DatabaseConfig {
  /** A name, an address, or the absolute path of the folder that has the server's socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password?: string;
  /** Absent: not encrypted. */
  readonly ssl?: DatabaseTls;
  /** How many this node keeps at most. */
  readonly connections: number;
}

/** Who decides which calls are traced: `parentbased`, the caller where it says; otherwise, and of the rest, this. */
export type SamplerName =
  | 'always_on'
  | 'always_off'
  | 'traceidratio'
  | 'parentbased_always_on'
  | 'parentbased_always_off'
  | 'parentbased_traceidratio';

export interface SamplerConfig {
  readonly name: SamplerName;
  /** Of those that go by the ratio. */
  readonly ratio: number;
}

export interface TracingConfig {
  /** Where spans are sent to, with which headers, and for how long at most. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeout: number;
  /** What is said of the service with them. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: SamplerConfig;
  /** How they are gathered before that. */
  readonly batch: {
    readonly scheduledDelayMillis: number;
    readonly maxQueueSize: number;
    readonly maxExportBatchSize: number;
  };
}

export interface Config {
  readonly listen: Address;
  readonly admin: Address;
  readonly adminToken?: string;
  /** Absolute path of the data directory; with a database it holds scratch files alone. */
  readonly data: string;
  /** PostgreSQL, shared by any number of nodes; the embedded store in `data` where absent. */
  readonly database?: DatabaseConfig;
  readonly role: Role;
  /** Processes on this machine. */
  readonly workers: number;
  /** 32 bytes each, the first seals; empty: then one is made once and kept in the data directory. */
  readonly encryptionKeys: readonly Uint8Array[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  readonly projects: ReadonlyMap<string, ProjectConfig>;
  /** By project, then by name. */
  readonly apps: ReadonlyMap<string, ReadonlyMap<string, AppConfig>>;
  readonly webhooks: WebhooksConfig;
  readonly async: AsyncConfig;
  readonly appTimeout: number;
  /** What the processes of apps get of the service's environment. */
  readonly appEnvironment: Readonly<Record<string, string>>;
  /** Absent: nothing is traced. */
  readonly tracing?: TracingConfig;
}
