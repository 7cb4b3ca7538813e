/**
 * `afterword completion`: prints a script by which a shell completes the commands, their options, and the values
 * of those that have choices.
 */
import { Argument, Command } from 'commander';
import { bashScript } from './completion/bash.ts';
import { fishScript } from './completion/fish.ts';
import { type Place, placesOf } from './completion/places.ts';
import { zshScript } from './completion/zsh.ts';
import type { Io } from './output.ts';

const SCRIPTS: Readonly<Record<string, (places: readonly Place[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

const NOTES = `
The script is made for the command named afterword. Make it anew after an upgrade.

Examples:
  source <(afterword completion bash)                      in ~/.bashrc
  source <(afterword completion zsh)                       in ~/.zshrc, below compinit
  afterword completion fish > ~/.config/fish/completions/afterword.fish`;

export function completionCommand(io: Io): Command {
  return new Command('completion')
    .description('Print a script for the completion of commands in a shell.')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', NOTES)
    .action((shell: string, _options: object, command: Command) => {
      io.stdout.write(SCRIPTS[shell]!(placesOf(command.parent!)));
    });
}
