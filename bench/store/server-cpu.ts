/**
 * The CPU time that a PostgreSQL server on this machine has used, all of its processes together, as Linux
 * tells it.
 */
import { readdirSync, readFileSync } from 'node:fs';

const MICROS_PER_TICK = 10_000;

/** The fields of proc_pid_stat(5) that matter here, by their number there less 3. */
const PARENT = 1;
/** In user mode and in the kernel's. */
const OWN = [11, 12];
const OF_ENDED_CHILDREN = [13, 14];

/** `backend` is the process of one of its connections; undefined where this machine knows no such process. */
export function serverCpuMicros(backend: number): number | undefined {
  const server = Number(fieldsOf(backend)?.[PARENT]);
  const own = fieldsOf(server);
  if (own === undefined) return undefined;
  const children = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => fieldsOf(Number(pid)))
    .filter(fields => fields !== undefined && Number(fields[PARENT]) === server);
  return children.reduce(
    (total, child) => total + micros(child!, OWN),
    micros(own, [...OWN, ...OF_ENDED_CHILDREN]),
  );
}

function micros(fields: readonly string[], which: readonly number[]): number {
  return which.reduce((total, field) => total + Number(fields[field]) * MICROS_PER_TICK, 0);
}

/** What follows the name, which may have anything in it. */
function fieldsOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined; // another machine's, or it has ended
  }
}
