/**
 * `afterword token`: makes a token for the calls of a project.
 */
import { Command, Option } from 'commander';
import { systemClock } from '../clock.ts';
import type { ProjectConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { UsageError } from '../errors.ts';
import { issueToken } from '../token.ts';
import { configOption, durationArgument, jsonOption } from './options.ts';
import { type Io, printJson } from './output.ts';

interface Options {
  readonly project: string;
  readonly ttl: number;
  readonly config?: string;
  readonly json?: true;
}

const NOTES = `
Examples:
  afterword token --project shop
  AFTERWORD_TOKEN="$(afterword token -p shop --ttl 1h --config prod.yaml)" afterword runs list`;

export function tokenCommand(io: Io): Command {
  return new Command('token')
    .description('Make a token for the calls of a project, signed with its secret.')
    .requiredOption('-p, --project <id>', 'the project')
    .addOption(
      new Option('--ttl <duration>', 'how long the token is valid')
        .argParser(durationArgument('1s', '3650d'))
        .default(30 * 24 * 3_600_000, '30d'),
    )
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText('after', NOTES)
    .action((options: Options) => makeToken(options, io));
}

async function makeToken(options: Options, io: Io): Promise<void> {
  const { config } = loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  const { jwt } = findProject(config.projects, options.project);
  if (jwt.secret === undefined) {
    throw new UsageError(
      `the tokens of ${options.project} are signed with a private key that is not here; ` +
        'only a project with jwt.secret can be given one',
    );
  }
  const ttlSeconds = Math.floor(options.ttl / 1000);
  const { secret, issuer, audience } = jwt;
  const request = { secret, issuer, audience, projectId: options.project, ttlSeconds, clock: systemClock };
  const token = await issueToken(request);
  if (options.json) printJson(io, { token, project_id: options.project, expires_in: ttlSeconds });
  else io.stdout.write(`${token}\n`);
}

function findProject(projects: ReadonlyMap<string, ProjectConfig>, id: string): ProjectConfig {
  const project = projects.get(id);
  if (project !== undefined) return project;
  const known = [...projects.keys()];
  throw new UsageError(
    `there is no project ${id}; ` +
      (known.length === 0 ? 'none is configured' : `configured are: ${known.join(', ')}`),
  );
}
