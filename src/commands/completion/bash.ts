/**
 * Completion for bash, from version 3.2 on: a function that finds out at which command the line is, then offers
 * what can follow there. Names of files are left to the shell, which knows how to quote them.
 */
import type { Place, Values } from './places.ts';
import { patterns, quoted } from './shell-words.ts';

export function bashScript(places: readonly Place[]): string {
  return `# Completion of afterword for bash.
_afterword() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} place='' words='' at
  # Bash takes --option=value for three words.
  if [[ $word == '=' ]]; then word=''
  elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "$place \${COMP_WORDS[at]}" in
      ${patterns(places.slice(1).map(({ path }) => path))}) place="$place \${COMP_WORDS[at]}" ;;
    esac
  done
  case "$place $previous" in
${places.flatMap(valueCases).join('\n')}
  esac
  case "$place" in
${places.map(placeCase).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _afterword afterword
`;
}

/** What follows an option that takes a value. */
function valueCases({ path, options }: Place): string[] {
  return options.flatMap(({ names, values }) =>
    values === undefined ? [] : `    ${patterns(names.map(name => `${path} ${name}`))}) ${offer(values)} ;;`,
  );
}

function offer(values: Values): string {
  if (values === 'any') return 'return';
  if (typeof values === 'string') return `${LEAVE[values]}; return`;
  return `COMPREPLY=($(compgen -W ${quoted(values.join(' '))} -- "$word")); return`;
}

/** To the completion that bash has for names of files. */
const LEAVE = {
  file: 'compopt -o default 2> /dev/null',
  folder: 'compopt -o dirnames 2> /dev/null',
} as const;

function placeCase({ path, commands, options, values = 'any' }: Place): string {
  const words = [
    ...commands.map(({ name }) => name),
    ...(typeof values === 'string' ? [] : values),
    ...options.flatMap(({ names }) => names),
  ];
  const files = values === 'file' || values === 'folder' ? `${LEAVE[values]}; ` : '';
  return `    ${quoted(path)}) ${files}words=${quoted(words.join(' '))} ;;`;
}
