/**
 * What can be done with a delivery by hand: send it again, send it elsewhere, end it.
 */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { post, Refused } from '../../api/client.ts';
import type { DeliveryDetail } from '../../api/shapes.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { notify } from '../../ui/notices.tsx';

interface ActionProps {
  readonly delivery: DeliveryDetail;
  /** It is not any more as it was. */
  readonly onChange: () => void;
}

/** Where what the service says of itself does not tell what to do. */
const REFUSALS: Readonly<Record<string, string>> = {
  delivery_pending: 'The delivery is under way already: wait for its end, or cancel it first.',
  delivery_settled: 'The delivery has ended already: there is nothing left to cancel.',
  delivery_not_found: 'The delivery is gone: it was deleted after its retention.',
};

export function Actions({ delivery, onChange }: ActionProps) {
  const busy = useSignal(false);
  const elsewhere = useSignal(false);
  const pending = delivery.state === 'pending';
  const underWay = pending ? 'It is under way already' : undefined;

  async function act(action: 'redeliver' | 'cancel', done: string): Promise<void> {
    busy.value = true;
    const trouble = await ask(delivery, action);
    busy.value = false;
    notify(trouble ?? done, trouble === undefined ? 'done' : 'problem');
    onChange();
  }

  return (
    <div class="row">
      {pending && (
        <button
          type="button"
          class="danger"
          disabled={busy.value}
          onClick={() => void act('cancel', 'The delivery is cancelled')}
        >
          Cancel
        </button>
      )}
      <button
        type="button"
        disabled={pending || busy.value}
        title={underWay}
        onClick={() => {
          elsewhere.value = true;
        }}
      >
        Redeliver elsewhere…
      </button>
      <button
        type="button"
        class="primary"
        disabled={pending || busy.value}
        title={underWay}
        onClick={() => void act('redeliver', 'A new round has begun')}
      >
        Redeliver
      </button>
      {elsewhere.value && (
        <Elsewhere
          delivery={delivery}
          onChange={onChange}
          onClose={() => {
            elsewhere.value = false;
          }}
        />
      )}
    </div>
  );
}

function Elsewhere({ delivery, onChange, onClose }: ActionProps & { readonly onClose: () => void }) {
  const target = useSignal(delivery.target);
  const trouble = useSignal<string | undefined>(undefined);
  const busy = useSignal(false);
  const form = useRef<HTMLFormElement>(null);
  // By the dialog's own way, which gives the focus back to where it was.
  const close = () => form.current?.closest('dialog')?.close();

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    busy.value = true;
    trouble.value = await ask(delivery, 'redeliver', { target: target.value.trim() });
    busy.value = false;
    if (trouble.value !== undefined) return;
    notify('A new round has begun, to the other target');
    close();
    onChange();
  }

  return (
    <Dialog title="Redeliver elsewhere" onClose={onClose}>
      <form ref={form} class="stack" onSubmit={event => void submit(event)}>
        <p class="faint">
          One round of up to three attempts goes there: the same body, signed with the same secret, without
          the credentials of the old target. The delivery keeps its own target for the next one.
        </p>
        <label>
          Target
          <input
            inputMode="url"
            autocomplete="off"
            spellcheck={false}
            required
            aria-describedby="elsewhere-trouble"
            aria-invalid={trouble.value !== undefined}
            value={target.value}
            onFocus={event => event.currentTarget.select()}
            onInput={event => {
              target.value = event.currentTarget.value;
            }}
          />
        </label>
        <p id="elsewhere-trouble" class="problem" role="alert">
          {trouble.value}
        </p>
        <div class="row end">
          <button type="button" onClick={close}>
            Close
          </button>
          <button type="submit" class="primary" disabled={busy.value}>
            Redeliver
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Undefined where it went well, otherwise what to tell. */
async function ask(
  { run_id }: DeliveryDetail,
  action: 'redeliver' | 'cancel',
  body?: unknown,
): Promise<string | undefined> {
  try {
    await post(`deliveries/${run_id}/${action}`, body);
    return undefined;
  } catch (error) {
    if (!(error instanceof Refused)) return 'The service did not answer: it may have been done, or not.';
    return REFUSALS[error.code ?? ''] ?? error.message;
  }
}
