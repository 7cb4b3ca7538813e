/**
 * The program of a worker. What it is to do it is told by the primary, over the channel between them; when that
 * closes it ends, whatever it is doing (`node:cluster` sees to it): nothing goes on alone.
 */
import { StartError } from '../errors.ts';
import { createChannel } from './channel.ts';
import type { Begin, FromWorker } from './messages.ts';
import { type Life, WorkerNode } from './worker-node.ts';

function main(): void {
  // A terminal sends its signals to the primary as well, and that one decides what they mean.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  let unsent = 0;
  let whenSent = (): void => {};
  const sent = (): void => {
    unsent -= 1;
    if (unsent === 0) whenSent();
  };
  const channel = createChannel({
    send(message) {
      unsent += 1;
      process.send!(message, sent);
    },
    listen: listener => void process.on('message', listener),
  });
  const life: Life = channel.port('life');
  let node: WorkerNode | undefined;
  let beginning: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  /** Says a last word, and ends when it is on its way. */
  function leave(word: FromWorker): void {
    whenSent = () => process.disconnect!();
    life.send(word);
  }

  async function begin(order: Begin): Promise<void> {
    node = new WorkerNode({ begin: order, channel, life });
    try {
      await node.start();
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      await node.stop(false);
      leave({ type: 'failed', message: error.message });
    }
  }

  async function stop(handOver: boolean): Promise<void> {
    await beginning;
    await node?.stop(handOver);
    leave({ type: 'done', snapshot: (await node?.measure()) ?? [] });
  }

  life.listen(message => {
    if (message.type === 'begin') beginning = begin(message.begin);
    else if (message.type === 'stop') stopping ??= stop(message.handOver);
    else if (message.type === 'shed') node?.shed(message.count);
    else void node?.measure().then(snapshot => life.send({ type: 'measured', id: message.id, snapshot }));
  });
}

main();
