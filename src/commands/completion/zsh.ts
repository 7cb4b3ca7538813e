/**
 * Completion for zsh: a function that finds out at which command the line is, then offers what can follow there.
 * It can be sourced, or be a file `_afterword` on `fpath`.
 */
import type { Place, Values } from './places.ts';
import { patterns, quoted } from './shell-words.ts';

export function zshScript(places: readonly Place[]): string {
  return `#compdef afterword
# Completion of afterword for zsh.
_afterword() {
  local place='' previous=\${words[CURRENT - 1]} at
  if [[ \${words[CURRENT]} == --*=* ]]; then
    previous=\${words[CURRENT]%%=*}
    compset -P '*='
  fi
  for ((at = 2; at < CURRENT; at++)); do
    case "$place \${words[at]}" in
      (${patterns(places.slice(1).map(({ path }) => path))}) place="$place \${words[at]}" ;;
    esac
  done
  case "$place $previous" in
${places.flatMap(valueCases).join('\n')}
  esac
  case "$place" in
${places.map(placeCase).join('\n')}
  esac
}
if [[ \${funcstack[1]} == _afterword ]]; then _afterword "$@"; else compdef _afterword afterword; fi
`;
}

/** What follows an option that takes a value. */
function valueCases({ path, options }: Place): string[] {
  return options.flatMap(({ names, values }) =>
    values === undefined
      ? []
      : `    (${patterns(names.map(name => `${path} ${name}`))}) ${[...offer(values), 'return'].join('; ')} ;;`,
  );
}

function placeCase({ path, commands, options, values = 'any' }: Place): string {
  const names = [...commands.map(({ name }) => name), ...options.flatMap(({ names }) => names)];
  return `    (${quoted(path)}) ${[...offer(values), ...offer(names)].join('; ')} ;;`;
}

function offer(values: Values): string[] {
  if (values === 'any') return [];
  if (values === 'file') return ['_files'];
  if (values === 'folder') return ['_files -/'];
  return [`compadd -- ${values.map(quoted).join(' ')}`];
}
