/** Functions that tell of their process, or end it; main.py has the same. */
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const pid = () => process.pid;
export const cwd = () => process.cwd();
export const env = () => ({ ...process.env });

export const crash = () => process.kill(process.pid, 'SIGKILL');
export function* crashMidway() {
  yield 'first';
  crash();
}

/** Tells that it runs, and returns when the file `<name>.go` is there. */
export async function hold({ folder, name }: { folder: string; name: string }) {
  writeFileSync(join(folder, name), String(process.pid));
  while (!existsSync(join(folder, `${name}.go`))) await sleep(5);
  return { name, pid: process.pid };
}

/** Is never silent until then. */
export async function* beat({ folder, name }: { folder: string; name: string }) {
  while (!existsSync(join(folder, `${name}.go`))) {
    yield process.pid;
    await sleep(20);
  }
  yield 'done';
}

/** Leaves a process behind. */
export const leave = () => spawn('sleep', ['300'], { stdio: 'ignore' }).pid;

export const say = ({ text }: { text: string }) => {
  console.log(text);
};

export function burn({ ms }: { ms: number }) {
  const end = performance.now() + ms;
  while (performance.now() < end);
  return ms;
}
