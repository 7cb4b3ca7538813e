/**
 * What can be typed where: the tree of the commands as shell completion needs it, read from the commands
 * themselves.
 */
import type { Argument, Command, Option } from 'commander';

/** What a value can be: one of some words, the name of a file or a folder, or something only the user knows. */
export type Values = readonly string[] | 'file' | 'folder' | 'any';

export interface CompletedOption {
  /** Short and long, as they are typed. */
  readonly names: readonly string[];
  readonly description: string;
  /** Of its value, where it takes one. */
  readonly values?: Values;
}

export interface Place {
  /** The commands up to here, each with a space before it: empty for the program itself. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  /** Of its arguments, where it takes any. */
  readonly values?: Values;
}

/** The program's first. */
export function placesOf(command: Command, path = ''): Place[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const [argument] = command.registeredArguments;
  const place: Place = {
    path,
    commands: commands.map(nested => ({ name: nested.name(), description: nested.description() })),
    options: help.visibleOptions(command).map(completedOption),
    ...(argument !== undefined && { values: valuesOf(argument, argument.name()) }),
  };
  return [place, ...commands.flatMap(nested => placesOf(nested, `${path} ${nested.name()}`))];
}

function completedOption(option: Option): CompletedOption {
  const [, placeholder] = /<(.+?)>/.exec(option.flags) ?? [];
  return {
    names: [option.short, option.long].filter(name => name !== undefined),
    description: option.description,
    ...(placeholder !== undefined && { values: valuesOf(option, placeholder) }),
  };
}

const BY_NAME: Readonly<Record<string, Values>> = { file: 'file', dir: 'folder', folder: 'folder' };

function valuesOf({ argChoices }: Pick<Option | Argument, 'argChoices'>, name: string): Values {
  return argChoices ?? BY_NAME[name] ?? 'any';
}
