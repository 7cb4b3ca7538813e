/**
 * Deliveries that get a new round each, by their run ids; and waiting until these rounds have ended.
 */
import { systemClock } from '../../clock.ts';
import type { Told } from '../ask.ts';
import type { Client, Fault } from '../client.ts';
import { checkRefused, toEach } from '../each-run.ts';
import { type AskOptions, follow } from '../follow.ts';
import { type Io, printJson } from '../output.ts';
import { type DeliveryDetails, readDelivery, redeliver } from './answer.ts';
import type { RedeliverOptions } from './redeliver.ts';
import { standingOf } from './view.ts';

export async function redeliverEach(
  client: Client,
  runIds: readonly string[],
  options: RedeliverOptions,
  io: Io,
): Promise<void> {
  const { to: target, idempotencyKey, wait, json } = options;
  const begun: DeliveryDetails[] = [];
  const print = (delivery: DeliveryDetails): void => printStanding(io, delivery, json === true);
  const refused = await toEach<Told<DeliveryDetails>>(
    runIds,
    {
      act: runId => redeliver(client, runId, { target, idempotencyKey }),
      tell: (_, { value }) => (wait ? begun.push(value) : print(value)),
    },
    io,
  );
  const ended = begun.length === 0 ? [] : await untilSettled(client, begun, options, io);
  ended.forEach(print);
  const undelivered = ended.filter(({ state }) => state !== 'delivered').length;
  checkRefused(refused + undelivered, 'delivered');
}

function printStanding(io: Io, delivery: DeliveryDetails, json: boolean): void {
  const { run_id, state, reason, round } = delivery;
  if (json) printJson(io, { run_id, state, reason, round });
  else io.stdout.write(`${run_id} ${standingOf(delivery)}, round ${round}\n`);
}

/** In their order. */
async function untilSettled(
  client: Client,
  begun: readonly DeliveryDetails[],
  { timeout: timeoutMs }: RedeliverOptions,
  io: Io,
): Promise<readonly DeliveryDetails[]> {
  let known = begun;
  const several = begun.length > 1;
  const { value } = await follow<Told<readonly DeliveryDetails[]>>({
    what: several ? 'the redelivery' : 'the delivery',
    id: several ? `${begun.length} deliveries` : begun[0]!.run_id,
    ask: async options => {
      const seen = await lookAgain(client, known, options);
      if (seen.kind === 'told') known = seen.value;
      return seen;
    },
    standing: ({ value }) => {
      const pending = value.filter(({ state }) => state === 'pending').length;
      return pending === 0 ? undefined : several ? `${pending} pending` : 'pending';
    },
    lookAgain: several ? 'deliveries list --state pending' : `deliveries show ${begun[0]!.run_id}`,
    timeoutMs,
    clock: systemClock,
    io,
  });
  return value;
}

/** Those that were pending. */
async function lookAgain(
  client: Client,
  known: readonly DeliveryDetails[],
  { signal }: AskOptions,
): Promise<Told<readonly DeliveryDetails[]> | Fault> {
  const value: DeliveryDetails[] = [];
  for (const delivery of known) {
    const seen =
      delivery.state === 'pending'
        ? await readDelivery(client, delivery.run_id, signal)
        : { value: delivery };
    if ('kind' in seen && seen.kind === 'fault') return seen;
    value.push(seen.value);
  }
  return { kind: 'told', value };
}
