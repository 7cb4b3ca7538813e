/**
 * A request as a command for a POSIX shell.
 */

export interface CurlRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Systems bound how long one argument may be (Linux: 128 KiB); what a pipe carries has no bound. */
const LONGEST_ARGUMENT = 100_000;

/** What is between `[` and `]`, or `{` and `}`, curl would take for a list of addresses. */
const GLOB = /[[\]{}]/;

export function curlCommand({ method, url, headers, body }: CurlRequest): string {
  const piped = new TextEncoder().encode(body).length > LONGEST_ARGUMENT;
  const lines = [
    ['curl', '--request', method, ...(GLOB.test(url) ? ['--globoff'] : []), url],
    ...Object.entries(headers).map(([name, value]) => ['--header', `${name}: ${value}`]),
    piped ? ['--data-binary', '@-'] : ['--data-raw', body],
  ];
  const command = lines.map(words => words.map(quoted).join(' ')).join(' \\\n  ');
  return piped ? `printf %s ${quoted(body)} |\n  ${command}` : command;
}

/** Within single quotes a shell takes everything as it is, but for the quote itself. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
