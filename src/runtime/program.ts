/**
 * The command line of an app's process: the runner of its language with the functions' file, or the
 * operator's own command with its port.
 */
import { fileURLToPath } from 'node:url';
import type { ProcessConfig } from '../config/config.ts';
import type { Door } from './door.ts';

export interface Program {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const NODE_RUNNER = import.meta.url.endsWith('.ts') ? './runners/node.ts' : './runners/node.js';
const PYTHON_RUNNER = './runners/python/runner.py';

const runner = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export function programOf({ program }: ProcessConfig, door: Door): Program {
  if (program.kind === 'command')
    return { command: program.command, env: { PORT: String((door as { port: number }).port) } };
  const { socket } = door as { socket: string };
  const env = { AFTERWORD_SOCKET: socket, AFTERWORD_ENTRY: program.entry };
  if (program.kind === 'python') return { command: [program.python, '-u', runner(PYTHON_RUNNER)], env };
  return { command: [process.execPath, runner(NODE_RUNNER)], env };
}
