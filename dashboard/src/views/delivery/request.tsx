/**
 * What is sent: the request of a delivery, and how to send or receive it oneself. The secret is not known here, and
 * so neither is the signature.
 */
import { useSignal } from '@preact/signals';
import type { DeliveryDetail, DeliveryRequest } from '../../api/shapes.ts';
import { curlCommand } from '../../curl.ts';
import { SNIPPETS, type SnippetName } from '../../snippets.ts';
import { CopyButton } from '../../ui/parts.tsx';
import { type HeaderLines, TextView } from './text-view.tsx';

const NAMES = Object.keys(SNIPPETS) as SnippetName[];

const SIGNATURE = 'X-Service-Webhook-Signature';

export interface SentRequestProps {
  readonly delivery: DeliveryDetail;
  /** Undefined where it is gone. */
  readonly body: string | undefined;
}

export function SentRequest({ delivery, body }: SentRequestProps) {
  const { request, run_id } = delivery;
  if (request === undefined) return null;
  return (
    <section class="panel request" aria-labelledby="request">
      <div class="spread">
        <h2 id="request">Request</h2>
        <Signed signed={request.signed} />
      </div>
      <p class="line">
        <b>{request.method}</b> <code>{request.url}</code>
      </p>
      <TextView
        label="Request body"
        text={body ?? ''}
        headers={Object.entries(request.headers)}
        withheld={withheldOf(request)}
        empty={GONE}
        fileName={`${run_id}.json`}
      />
      <Copies request={request} body={body} />
    </section>
  );
}

const GONE =
  'The body is not stored any more. It is deleted along with its delivery, after webhooks.retention; one that is gone before was lost from the data directory or the database.';

function Signed({ signed }: Pick<DeliveryRequest, 'signed'>) {
  if (signed === undefined)
    return <span class="state bad">the secret cannot be opened: its encryption key is missing</span>;
  return signed ? <span class="state good">signed</span> : <span class="state">not signed</span>;
}

function withheldOf({ signed, headers }: DeliveryRequest): HeaderLines {
  if (signed === false) return [[SIGNATURE, 'absent: the call had no X-Webhook-Secret']];
  const made = 'not shown: made with the secret, anew for each attempt';
  return [[SIGNATURE, made], ...('webhook-id' in headers ? [['webhook-signature', made] as const] : [])];
}

function Copies({ request, body }: { readonly request: DeliveryRequest; readonly body: string | undefined }) {
  const language = useSignal<SnippetName>('Node');
  return (
    <div class="stack">
      <div class="row">
        {body !== undefined && (
          <CopyButton text={() => curlCommand({ ...request, body })}>Copy as curl</CopyButton>
        )}
        <CopyButton text={() => SNIPPETS[language.value]}>Copy verification snippet</CopyButton>
        <label class="inline">
          <span class="hidden">Language of the snippet</span>
          <select
            value={language.value}
            onChange={event => {
              language.value = event.currentTarget.value as SnippetName;
            }}
          >
            {NAMES.map(name => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      </div>
      <p class="faint">
        {body !== undefined && request.signed !== false && (
          <>The command is not signed: this page does not know the secret. </>
        )}
        The snippet is a receiver that accepts only what is signed
        {request.signed === false && ', which this delivery is not'}.
      </p>
    </div>
  );
}
