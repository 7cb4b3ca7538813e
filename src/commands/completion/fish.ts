/**
 * Completion for fish: a rule for each word that can be typed somewhere, with what it is for, and a function that
 * says whether the line is at that place.
 */
import type { CompletedOption, Place, Values } from './places.ts';

export function fishScript(places: readonly Place[]): string {
  const deeper = places.slice(1).map(({ path }) => quoted(path));
  return `# Completion of afterword for fish.
function __afterword_at --argument-names wanted
    set -l place ''
    for word in (commandline -opc)[2..-1]
        switch "$place $word"
            case ${deeper.join(' ')}
                set place "$place $word"
        end
    end
    test "$place" = "$wanted"
end
complete -c afterword -e
complete -c afterword -f
${places.flatMap(rulesOf).join('\n')}
`;
}

function rulesOf({ path, commands, options, values }: Place): string[] {
  const rule = `complete -c afterword -n ${quoted(`__afterword_at ${quoted(path)}`)}`;
  return [
    ...commands.map(({ name, description }) => `${rule} -a ${quoted(name)} -d ${quoted(description)}`),
    ...options.map(option => `${rule}${namesOf(option)}${taking(option)} -d ${quoted(option.description)}`),
    ...(values === undefined || values === 'any' ? [] : [`${rule}${offer(values)}`]),
  ];
}

function namesOf({ names }: CompletedOption): string {
  return names
    .map(name => (name.startsWith('--') ? ` -l ${name.slice(2)}` : ` -s ${name.slice(1)}`))
    .join('');
}

/** `-r`: a value follows. */
function taking({ values }: CompletedOption): string {
  return values === undefined ? '' : ` -r${offer(values)}`;
}

function offer(values: Values): string {
  if (values === 'any') return ' -f';
  if (values === 'file') return ' -F';
  if (values === 'folder') return ` -f -a '(__fish_complete_directories)'`;
  return ` -f -a ${quoted(values.join(' '))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
